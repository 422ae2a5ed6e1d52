# SPDX-License-Identifier: Apache-2.0
"""`bwb demo` and `make demo`: a broker, two agents and real files on one machine, compared with the promises."""
