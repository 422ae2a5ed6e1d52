# SPDX-License-Identifier: Apache-2.0
"""The exported contract, api-spec/openapi.yaml: what the application says of itself, in a form that diffs well."""

from typing import Any

import yaml
from fastapi import FastAPI

from broker.api.callers import CSRF_HEADER, SESSION_COOKIE

_SESSION = (
    f"Of POST /v1/session; over https it is called __Host-{SESSION_COOKIE}. What changes anything needs {CSRF_HEADER}: 1 with it."
)


def document(app: FastAPI) -> str:
    """OpenAPI 3.1 as YAML, keys in the order in which FastAPI gives them."""
    described: dict[str, Any] = app.openapi()
    described["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE, "description": _SESSION},
    }
    described["security"] = [{"token": []}, {"session": []}]
    return "# SPDX-License-Identifier: Apache-2.0\n# Exported by `bwb openapi`; do not edit.\n" + yaml.safe_dump(
        described, sort_keys=False, allow_unicode=True, width=120
    )
