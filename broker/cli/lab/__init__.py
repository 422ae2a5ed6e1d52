# SPDX-License-Identifier: Apache-2.0
"""`bwb lab`: hosts in network namespaces on this machine."""
