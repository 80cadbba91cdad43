"""The OpenAPI document matches the server, for generated requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests
import schemathesis
from django.test import Client
from hypothesis import HealthCheck, settings
from schemathesis.config import SchemathesisConfig
from schemathesis.core.transport import Response
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

from tests.sessions.answers import DOCUMENT, ApiClient, check
from tests.sessions.programs import Program

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

EXAMPLES = 6  # beside about 47 systematic cases of each operation

NOT_ASKED = [
    ignored_auth,  # covered by test_access for every route
    positive_data_acceptance,  # constraints outside the schema (an existing step) give 422
]


def _with_known_names(made: dict[str, Any]) -> dict[str, Any]:
    """The document with examples, so that generated requests often name existing objects."""
    made = json.loads(json.dumps(made))
    known = {"session_id": ["run", "empty"], "ref": ["1", "m1.0"]}
    for operations in made["paths"].values():
        for operation in operations.values():
            for parameter in operation["parameters"]:
                if names := known.get(parameter["name"]):
                    parameter["schema"] = {"anyOf": [{"enum": names}, {"type": "string"}]}
    # Nothing generates protobuf; test_traces sends it.
    made["paths"]["/api/v1/traces"]["post"]["requestBody"]["content"].pop("application/x-protobuf")
    return made


schema = schemathesis.openapi.from_dict(
    _with_known_names(DOCUMENT),
    # Every request has the right key.
    config=SchemathesisConfig.from_dict({"generation": {"with-security-parameters": False}}),
)


def send(case: schemathesis.Case, token: str) -> Response:
    """The server's response to a case, in this process and the test's transaction."""
    given = case.as_transport_kwargs(
        base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {token}"}
    )
    asked = requests.Request(**{name: given[name] for name in _PARTS if name in given}).prepare()
    headers = {name: str(value) for name, value in asked.headers.items()}
    kind = headers.pop("Content-Type", "")
    headers.pop("Content-Length", None)
    headers.pop("Accept-Encoding", None)  # nothing here would decompress it
    body = asked.body or b""
    answer = ApiClient(SERVER_NAME="127.0.0.1", raise_request_exception=False).generic(
        str(asked.method),
        str(asked.path_url),
        body.encode() if isinstance(body, str) else bytes(body),
        kind,
        headers=headers,
    )
    return Response(
        status_code=answer.status_code,
        headers={name: [value] for name, value in answer.headers.items()},
        content=answer.getvalue(),
        request=asked,
        elapsed=0.0,
        verify=False,
    )


_PARTS = ("method", "url", "headers", "params", "cookies", "json", "data", "files")


@pytest.fixture
def prepared(program: Program) -> Program:
    """A team with a session that has messages, and one that has none."""
    program.ask("PUT", "/sessions/empty", {})
    program.post("/sessions/run/messages", {"messages": [{"role": "user", "content": "a\nb"}]})
    return program


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_whatever_is_sent_gets_an_answer_that_the_document_knows(
    case: schemathesis.Case, prepared: Program
):
    answer = send(case, prepared.token)
    operation = DOCUMENT["paths"][case.operation.path].get(case.method.lower())
    assert str(answer.status_code) in (operation["responses"] if operation else ("405",))
    case.validate_response(answer, excluded_checks=NOT_ASKED)


def test_the_document_is_the_one_that_is_served(client: Client):
    answer = client.get("/api/v1/openapi.json")
    assert answer["Content-Type"] == "application/json"
    assert answer.json() == DOCUMENT
    assert DOCUMENT["openapi"].startswith("3.1")


def test_every_operation_says_what_it_does_and_how_it_fails():
    for address, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            where = f"{method} {address}"
            assert operation["description"].endswith("."), where
            assert {"401", "403", "404", "422", "429", "503"} <= set(operation["responses"]), where
            assert operation["security"] == [{"KeyOrPerson": []}], where
            assert any(status < "400" for status in operation["responses"]), where


def test_the_page_shows_every_operation(client: Client):
    page = client.get("/api/v1/docs").content.decode()
    for operations in DOCUMENT["paths"].values():
        for operation in operations.values():
            assert f'id="{operation["operationId"]}"' in page
    assert "`" not in page, "what stands between backticks is code"
    assert "<script>" not in page
    assert "style=" not in page


@pytest.mark.parametrize("change", [{"extra": 1}, {"sessions": None}, {"next": 7}])
def test_the_check_of_answers_finds_what_the_document_does_not_allow(
    program: Program, change: dict[str, Any]
):
    answer = program.ask("GET", "/sessions")
    result = answer.json()
    answer.json = lambda: result | change
    with pytest.raises(AssertionError, match="record_sessions_"):
        check(answer)
