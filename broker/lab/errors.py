# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in a laboratory."""


class LabError(Exception):
    """A laboratory cannot be built, or something in it failed; the message says what to do."""
