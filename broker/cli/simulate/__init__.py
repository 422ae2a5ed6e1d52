# SPDX-License-Identifier: Apache-2.0
"""`bwb simulate`: what-if questions offline."""
