# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL: tables, the one commit point, and every query of the broker."""
