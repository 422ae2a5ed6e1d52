# SPDX-License-Identifier: Apache-2.0
"""`bwb up`, `serve`, `worker`, `migrate`, `openapi`: the broker's own processes."""
