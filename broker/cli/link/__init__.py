# SPDX-License-Identifier: Apache-2.0
"""`bwb link`: the network and its calendars."""
