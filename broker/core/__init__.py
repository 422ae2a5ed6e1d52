# SPDX-License-Identifier: Apache-2.0
"""The pure core: units, gamma(t), network, requests, plans. No clock, no randomness, no I/O."""
