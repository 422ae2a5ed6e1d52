# SPDX-License-Identifier: Apache-2.0
"""Read-only views for pages and answers: calendars, load and use of links. Nothing here books."""
