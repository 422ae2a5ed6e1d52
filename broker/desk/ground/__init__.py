# SPDX-License-Identifier: Apache-2.0
"""What every decision stands on: a transaction's batch, the calendars, commands, refusals, limits."""
