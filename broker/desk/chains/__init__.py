# SPDX-License-Identifier: Apache-2.0
"""Transfers that begin when another one ends: their signals, and what a late predecessor means."""
