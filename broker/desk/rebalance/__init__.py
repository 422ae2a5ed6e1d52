# SPDX-License-Identifier: Apache-2.0
"""Moving booked transfers to better plans without a request: re-optimisation and pulling forward."""
