# SPDX-License-Identifier: Apache-2.0
"""What only looks: calendars, load and use of links, for pages and answers. Nothing here books."""
