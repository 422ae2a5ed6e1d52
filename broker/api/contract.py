# SPDX-License-Identifier: Apache-2.0
"""The exported contract, api-spec/openapi.yaml: what the application says of itself, in a form that diffs well."""

from typing import Any

import yaml
from fastapi import FastAPI


def document(app: FastAPI) -> str:
    """OpenAPI 3.1 as YAML, keys in the order in which FastAPI gives them."""
    described: dict[str, Any] = app.openapi()
    described["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    described["security"] = [{"token": []}]
    return "# SPDX-License-Identifier: Apache-2.0\n# Exported by `bwb openapi`; do not edit.\n" + yaml.safe_dump(
        described, sort_keys=False, allow_unicode=True, width=120
    )
