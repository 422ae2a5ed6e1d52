# SPDX-License-Identifier: Apache-2.0
"""Transfers that nobody asked about move to better places: re-optimisation and pulling forward."""
