# SPDX-License-Identifier: Apache-2.0
"""`bwb plan`: plan offline."""
