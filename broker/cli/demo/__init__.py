# SPDX-License-Identifier: Apache-2.0
"""`bwb demo` and `make demo`: a whole broker, two agents and real files on one machine, judged by what was promised."""
