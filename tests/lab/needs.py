# SPDX-License-Identifier: Apache-2.0
"""Marks a test that needs the laboratory: where it cannot run, it is skipped, and the reason says what was not shown."""

import shutil

import pytest

from broker.lab import why_not


def laboratory(*programs: str) -> pytest.MarkDecorator:
    """For `pytestmark` or a single test; `programs` must be on PATH as well."""
    reasons = why_not() + [
        f"there is no {name}: `make tools` as root installs it" for name in programs if shutil.which(name) is None
    ]
    return pytest.mark.skipif(bool(reasons), reason=f"NOT SHOWN HERE, needs the laboratory: {'; '.join(reasons)}")
