# SPDX-License-Identifier: Apache-2.0
"""Changes of links and topology, and the displacement of transfers whose promises they break."""
