# SPDX-License-Identifier: Apache-2.0
"""Changes of links and topology, and what becomes of the promises that they break."""
