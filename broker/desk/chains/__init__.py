# SPDX-License-Identifier: Apache-2.0
"""Chains: transfers that begin when another one ends, their start signals, and late predecessors."""
