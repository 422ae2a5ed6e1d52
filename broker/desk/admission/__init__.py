# SPDX-License-Identifier: Apache-2.0
"""Requests become bookings, or refusals; quotes ask without booking."""
