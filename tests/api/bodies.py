# SPDX-License-Identifier: Apache-2.0
"""A request that would be admitted, for tests that spoil one thing of it."""

JSON = {"Content-Type": "application/json"}
GOOD = {"source": "A", "destination": "B", "volume_bytes": 1000}
