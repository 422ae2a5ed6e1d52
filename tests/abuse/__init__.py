# SPDX-License-Identifier: Apache-2.0
"""Attacks beside a normal client: its worst wait and the memory of the API are bounded (docs/code.md)."""
