# SPDX-License-Identifier: Apache-2.0
"""`bwb transfer`: request, watch and control transfers."""
