# SPDX-License-Identifier: Apache-2.0
"""The REST API, /v1: validation and rendering. Decisions are the desk's, queries the store's."""
