# SPDX-License-Identifier: Apache-2.0
"""Errors of a laboratory."""


class LabError(Exception):
    """A laboratory cannot be built, or a part of it failed; the message says how to proceed."""
