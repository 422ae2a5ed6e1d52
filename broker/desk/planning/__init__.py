# SPDX-License-Identifier: Apache-2.0
"""From a request to a plan, and from a transfer under way to a new plan for its remaining volume."""
