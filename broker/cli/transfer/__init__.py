# SPDX-License-Identifier: Apache-2.0
"""`bwb transfer`: ask for transfers, watch and steer them."""
