"""The API's OpenAPI document, and its HTML page."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET
from ninja import NinjaAPI

from sessions.api.web import problems, shapes

Document = dict[str, Any]

_EVERYWHERE = {
    401: "The key is missing, unknown, revoked or expired",
    403: "The key has only read scope",
    404: "Missing, or it belongs to another team",
    422: "A field is invalid; `errors` says which and why",
    429: "Too many parallel requests with this key, or a quota of the team is used up (`quota`);"
    " `Retry-After` says when to retry",
    500: "Server error; nothing was stored",
    503: "The database or the server is busy; `Retry-After` says when to retry",
}
_WITH_A_BODY = {
    400: "The body is not valid JSON",
    409: "Conflicts with the current state; `detail` says why",
    413: "The body is too large",
    415: "Unsupported content type",
    507: "The team's quota of storage is used up",
}
_WITH_A_SESSION = {410: "The session was erased, or is being erased"}
_SESSION_IN_BODY = {"memory_boards_subscribe", "reviews_reviews_add"}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
    "description": "The request takes effect once per key; repetitions return the same response.",
}

_KEEP_NOTHING = {
    "caches_cache_check",
    "erasure_erasures_verify",
    "notifications_notifications_add_channel",
}
"""POST operations that need no Idempotency-Key: without side effects, or refused when repeated,
with a response that must not be stored."""

_EXAMPLE = """\
export API={address}
export KEY="Authorization: Bearer $(contextlab token create --team my-team | head -1)"
curl -H "$KEY" -X PUT $API/sessions/my-run \\
  --json '{{"agent": "mine", "model": "claude-sonnet-5"}}'
curl -H "$KEY" $API/sessions/my-run/messages \\
  --json '{{"messages": [{{"role": "user", "content": "Hi"}}]}}'
curl -H "$KEY" "$API/sessions/my-run/context?format=anthropic\""""

_ORDER = (
    *("Sessions", "Messages", "Context", "Budgets", "Pins", "Tools", "Memory", "Revisions"),
    *(
        "Imports",
        "Jobs",
        "Keys",
        "Notifications",
        "Ingestion",
        "Erasures",
        "Masking",
        "Masking",
        "Dashboard",
        "Replay",
        "Lab",
        "Policies",
    ),
    "Reviews",
)
"""Groups in order of use: first those an agent needs at every step."""

_OF_PATHS = {
    "session_id": "your own id of the session, or its UUID",
    "item_id": "a compaction in the review queue",
    "ref": "the reference in a stub, such as m12.0@ab12cd34, or a message number",
}


def document(api: NinjaAPI) -> Document:
    """The OpenAPI 3.1 document, including responses shared by all operations."""
    made: Document = json.loads(json.dumps(api.get_openapi_schema(path_prefix="/api/v1/")))
    made["components"]["schemas"]["Problem"] = shapes.Problem.model_json_schema(
        ref_template="#/components/schemas/{model}"
    )
    parts = made["components"]["schemas"]["Problem"].pop("$defs")
    made["components"]["schemas"].update(parts)
    for operations in made["paths"].values():
        for method, operation in operations.items():
            _complete(method, operation)
    return made


def _complete(method: str, operation: Document) -> None:
    operation["operationId"] = operation["operationId"].removeprefix("sessions_api_")
    result = _EVERYWHERE | (_WITH_A_BODY if method in ("post", "put") else {})
    named = {parameter["name"] for parameter in operation["parameters"]}
    if named & {"session_id", "session"} or operation["operationId"] in _SESSION_IN_BODY:
        result = result | _WITH_A_SESSION
    for status, description in sorted(result.items()):
        answer: Document = {
            "description": description,
            "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        if status in (429, 503):
            answer["headers"] = {
                "Retry-After": {"description": "seconds", "schema": {"type": "integer"}}
            }
        operation["responses"].setdefault(str(status), answer)
    for status, answer in operation["responses"].items():
        if status >= "400":
            (form,) = answer["content"].values()
            answer["content"] = {problems.MEDIA_TYPE: form}
    for parameter in operation["parameters"]:
        if text := _OF_PATHS.get(parameter["name"]):
            parameter["description"] = text
    if method in ("post", "delete") and operation["operationId"] not in _KEEP_NOTHING:
        operation["parameters"].append(_KEY)


@cache
def _written(api: NinjaAPI) -> bytes:
    return json.dumps(document(api), indent=1).encode()


@login_not_required
@require_GET
def openapi(request: HttpRequest, api: NinjaAPI) -> HttpResponse:
    """The OpenAPI document; public, because it contains no team data."""
    return HttpResponse(_written(api), content_type="application/json")


@login_not_required
@require_GET
def docs(request: HttpRequest, api: NinjaAPI) -> HttpResponse:
    """The OpenAPI document as an HTML page."""
    example = _EXAMPLE.format(address=request.build_absolute_uri("/api/v1").rstrip("/"))
    context = {"example": example, **page(json.loads(_written(api)))}
    return render(request, "web/api_docs.html", context)


def page(made: Document) -> dict[str, Any]:
    """The document as template context: groups of operations, then schemas."""
    groups: dict[str, list[Document]] = {}
    for address, operations in made["paths"].items():
        for method, operation in operations.items():
            groups.setdefault(operation["tags"][0], []).append(
                _operation(address, method, operation)
            )
    schemas = made["components"]["schemas"]
    return {
        "section": "api",
        "info": made["info"],
        "groups": sorted(groups.items(), key=lambda group: _ORDER.index(group[0])),
        "shapes": [
            {
                "name": name,
                "more": _paragraphs(schema.get("description", "")),
                "fields": _fields(schema),
            }
            for name, schema in sorted(schemas.items())
        ],
    }


def _operation(address: str, method: str, operation: Document) -> Document:
    body = operation.get("requestBody", {}).get("content", {})
    return {
        "id": operation["operationId"],
        "method": method.upper(),
        "address": address,
        "summary": _paragraphs(operation["description"])[0],
        "more": _paragraphs(operation["description"])[1:],
        "parameters": [
            parameter
            | {
                "type": _type(parameter["schema"]),
                "description": _marked(parameter.get("description", "")),
            }
            for parameter in operation["parameters"]
        ],
        "body": [(kind, _type(form["schema"])) for kind, form in body.items()],
        "answers": [
            (status, _marked(result["description"]), _describe_answer(result))
            for status, result in sorted(operation["responses"].items())
            if status < "400"
        ],
    }


def _marked(text: str) -> list[tuple[bool, str]]:
    """Split a text at backticks into pieces, each with a flag for code."""
    return [(bool(place % 2), piece) for place, piece in enumerate(text.split("`"))]


def _paragraphs(text: str) -> list[list[tuple[bool, str]]]:
    return [_marked(paragraph) for paragraph in text.split("\n\n")]


def _describe_answer(answer: Document) -> str:
    forms = list(answer.get("content", {}).values())
    return _type(forms[0]["schema"]) if forms else ""


def _fields(schema: Document) -> list[Document]:
    required = schema.get("required", [])
    return [
        {
            "name": name,
            "type": _type(field),
            "required": name in required,
            "description": _marked(field.get("description", "")),
        }
        for name, field in schema.get("properties", {}).items()
    ]


def _type(schema: Document) -> str:
    """A type in a few words: `string`, `list of Stored`, `integer or null`."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if choices := schema.get("anyOf"):
        return " or ".join(_type(choice) for choice in choices)
    if values := schema.get("enum"):
        return " or ".join(json.dumps(value) for value in values)
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    name = str(schema.get("type", "any JSON"))
    if schema.get("format") == "binary":
        return "bytes"
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None and most < 10**8:
        return f"{name}, {least:g} to {most:g}"
    return name
