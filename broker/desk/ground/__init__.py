# SPDX-License-Identifier: Apache-2.0
"""The basis of every decision: a transaction's batch, the calendars, commands, refusals, limits."""
