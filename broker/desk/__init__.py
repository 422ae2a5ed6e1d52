# SPDX-License-Identifier: Apache-2.0
"""The admission desk: load, plan, verify, write, in one transaction; many requests at a time."""
