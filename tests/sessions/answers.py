"""Answers of the API held against its OpenAPI document."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import jsonschema_rs
from django.http import HttpResponse
from django.test import Client
from django.urls import Resolver404, resolve

from sessions.api.urls import api
from sessions.api.web.documents import Document, document

DOCUMENT = document(api)


class ApiClient(Client):
    """An API client that validates every response against the OpenAPI document."""

    def request(self, **request: Any) -> HttpResponse:
        """Send a request; fail if the document does not allow the response."""
        answer = super().request(**request)
        if answer.request["PATH_INFO"].startswith("/api/v1/"):
            check(answer)
        return answer


def check(answer: Any) -> None:
    """Fail on a status, media type, field or value that the document does not have."""
    operation = _operation(answer.request["PATH_INFO"], answer.request["REQUEST_METHOD"])
    if operation is None:
        return
    where = f"{operation['operationId']} {answer.status_code}"
    assert str(answer.status_code) in operation["responses"], where
    content = operation["responses"][str(answer.status_code)].get("content", {})
    kind = answer.headers.get("Content-Type", "").partition(";")[0]
    if not answer.streaming and not answer.content and not content:
        return
    assert kind in content, f"{where}: {kind!r}"
    if kind.endswith("json"):
        problems = [
            str(one)
            for one in _validator(json.dumps(content[kind]["schema"])).iter_errors(answer.json())
        ]
        assert not problems, f"{where}: {problems}"


def _operation(path: str, method: str) -> Document | None:
    """The document's entry for an address, if it has one."""
    try:
        route = resolve(path).route
    except Resolver404:
        return None
    address = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", f"/{route}")
    found: Document | None = DOCUMENT["paths"].get(address, {}).get(method.lower())
    return found


@cache
def _validator(schema: str) -> Any:
    return jsonschema_rs.validator_for(
        json.loads(schema) | {"components": _COMPONENTS}, validate_formats=True
    )


def _closed(schema: Any) -> Any:
    """A schema whose objects allow no additional fields."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: _closed(one) for name, one in schema.items()}
    if isinstance(schema.get("properties"), dict):
        made.setdefault("additionalProperties", False)
    return made


_COMPONENTS: Document = _closed(DOCUMENT["components"])
