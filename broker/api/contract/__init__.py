# SPDX-License-Identifier: Apache-2.0
"""The contract of the REST API: what FastAPI says of the routes, completed and put into a form that clients can be generated from."""
