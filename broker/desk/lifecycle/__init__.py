# SPDX-License-Identifier: Apache-2.0
"""What happens to one transfer after its admission: changes, ends, and what its agents say."""
