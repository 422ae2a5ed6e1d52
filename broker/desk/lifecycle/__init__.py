# SPDX-License-Identifier: Apache-2.0
"""Changes of one transfer after its admission: by its owner, by its end, and by reports of its agents."""
