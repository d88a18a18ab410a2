"""The description of all questions in the language of OpenAPI 3.1, made from the endpoints: `api/openapi.json`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import strobe
from strobe.model.option import Option
from strobe.server.routing.bodies import JSON_TYPE
from strobe.server.routing.endpoints import Endpoint, highest
from strobe.server.trace_context import TraceContext

_KINDS = {"whole": "integer", "real": "number", "flag": "boolean"}  # others are texts
_REFUSAL = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {"type": "string", "description": "what is wrong, in a sentence"},
        "do": {"type": "string", "description": "what to do"},
    },
}
_REFUSAL_CONTENT = {JSON_TYPE: {"schema": {"$ref": "#/components/schemas/Refusal"}}}
_REFUSALS: dict[str, dict[str, object]] = {
    "304": {"description": "the page has this answer already (If-None-Match)"},
    "400": {"description": "the question is wrong", "content": _REFUSAL_CONTENT},
    "404": {"description": "unknown route, or a wrong token", "content": _REFUSAL_CONTENT},
    "422": {"description": "the trace has no sound answer", "content": _REFUSAL_CONTENT},
    "503": {"description": "too many requests wait already", "content": _REFUSAL_CONTENT},
    "504": {"description": "the answer took too long", "content": _REFUSAL_CONTENT},
}


def openapi(endpoints: Iterable[Endpoint], context: TraceContext) -> dict[str, Any]:
    """Return the description; the bounds are those of the trace. Addresses are relative to that of the description."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"strobe view: {context.path.name}",
            "version": strobe.__version__,
            "description": "Questions to one trace. Everything only reads.",
        },
        "servers": [{"url": "."}],
        "paths": {f"/{endpoint.name}": {"get": _operation(endpoint, context)} for endpoint in endpoints},
        "components": {"schemas": {"Refusal": _REFUSAL}},
    }


def _operation(endpoint: Endpoint, context: TraceContext) -> dict[str, Any]:
    return {
        "operationId": endpoint.name.replace("/", "_"),
        "summary": endpoint.question,
        "description": f"At most {endpoint.most_bytes} bytes.",
        "parameters": [_parameter(each, context) for each in endpoint.parameters],
        "responses": {
            "200": {
                "description": "the answer",
                "content": {media.partition(";")[0]: {} for media in endpoint.media},
            },
            **_REFUSALS,
        },
    }


def schema_of(parameter: Option, most: int) -> dict[str, Any]:
    """Return the JSON schema of a parameter; `most` is the largest number that it may be."""
    schema: dict[str, Any] = {"type": _KINDS.get(parameter.kind, "string")}
    if parameter.kind == "whole":
        schema |= {"minimum": parameter.least, "maximum": most}
    elif parameter.kind == "text":
        schema["maxLength"] = parameter.most
    elif parameter.kind == "choice":
        schema["enum"] = list(parameter.choices)
    if parameter.items:
        schema = {"type": "array", "items": schema, "minItems": 1, "maxItems": parameter.items}
    if not parameter.required and parameter.default is not None:
        schema["default"] = parameter.default
    return schema


def _parameter(parameter: Option, context: TraceContext) -> dict[str, Any]:
    described = {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.help,
        "schema": schema_of(parameter, highest(parameter, context)),
    }
    # Numbers with commas between, not a parameter for each.
    return {**described, "style": "form", "explode": False} if parameter.items else described
