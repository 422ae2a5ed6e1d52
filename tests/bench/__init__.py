# SPDX-License-Identifier: Apache-2.0
"""`make bench`: one JSON object of figures. Machines differ, so what matters are the ratios inside one run."""
