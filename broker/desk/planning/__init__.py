# SPDX-License-Identifier: Apache-2.0
"""From a request to a plan, and from a transfer that is under way to a new plan of what is left."""
