# SPDX-License-Identifier: Apache-2.0
"""Parts of responses and operations that the routes name in their decorators."""

from typing import Any

Part = dict[str, Any]

# Contents that are not JSON.
TEXT: Part = {"schema": {"type": "string"}}
BINARY: Part = {"schema": {"type": "string", "format": "binary"}}

# Responses.
TAGGED: Part = {"headers": {"ETag": {"$ref": "#/components/headers/ETag"}}}
NOT_MODIFIED: Part = TAGGED | {"description": "It is what If-None-Match names."}
CREATED: Part = {"headers": {"Location": {"$ref": "#/components/headers/Location"}, **TAGGED["headers"]}}

# Operations that need no token.
OPEN: Part = {"security": []}

HEADERS: Part = {
    "ETag": {"description": "The revision of what is answered, for If-Match and If-None-Match.", "schema": {"type": "string"}},
    "Location": {"description": "Where what was made can be read.", "schema": {"type": "string", "format": "uri-reference"}},
    "Retry-After": {"description": "Seconds after which to send the request again.", "schema": {"type": "integer", "minimum": 0}},
    "RateLimit": {
        "description": "What is left of the limit that was hit, as in draft-ietf-httpapi-ratelimit-headers.",
        "schema": {"type": "string"},
    },
    "RateLimit-Policy": {"description": "The limit that was hit: requests (q) within seconds (w).", "schema": {"type": "string"}},
    "WWW-Authenticate": {"description": "The scheme to authenticate by.", "schema": {"type": "string"}},
    "Accept": {"description": "The media type that is taken.", "schema": {"type": "string"}},
    "X-Request-ID": {
        "description": "The id of the request: the caller's own where it sent one, else a new one.",
        "schema": {"type": "string", "maxLength": 64},
    },
}
EVERY_ANSWER: Part = {"X-Request-ID": {"$ref": "#/components/headers/X-Request-ID"}}
