"""Limits on the shape of a body: refused before it is parsed, with the limit named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessions.api.web import sizes
from sessions.api.web.sizes import BLOCKS, VALUES, OversizedBody, check_values
from sessions.importers import decoded
from sessions.models import Message
from tests.sessions.programs import Program, assert_problem

ADDRESS = "/sessions/big/messages"


def blocks(count: int) -> bytes:
    """A message with so many text blocks."""
    content = [{"type": "text", "text": "x"}] * count
    return json.dumps({"messages": [{"role": "user", "content": content}]}).encode()


def post(program: Program, body: bytes) -> Any:
    """Send a body as it is."""
    return program.ask("POST", ADDRESS, body)


@pytest.mark.fault("F4")
@pytest.mark.django_db
@pytest.mark.usefixtures("jobs_wait")
def test_a_message_of_200_000_blocks_is_not_even_parsed(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoded, "exact", None)
    said = assert_problem(post(program, blocks(200_000)), 413)
    assert f"{VALUES:,} values" in said["detail"]
    assert not Message.objects.exists()


@pytest.mark.django_db
@pytest.mark.usefixtures("jobs_wait")
def test_a_message_has_so_many_blocks(program: Program) -> None:
    said = assert_problem(post(program, blocks(BLOCKS + 1)), 413)
    assert f"at most {BLOCKS:,} content blocks" in said["detail"]
    assert said["errors"][0]["pointer"] == "/messages/0/content"
    assert not Message.objects.exists()
    assert post(program, blocks(BLOCKS)).status_code == 201


@pytest.mark.parametrize(
    "value",
    [
        ["a,b" * 5] * (VALUES // 2),
        {"m": "1,2,3\n" * VALUES},
        {"m": '",",[{' * VALUES},
        {"m": "\\" * VALUES + ",[" * VALUES},
        [{"a": [1, 2]}] * (VALUES // 4 - 1),
    ],
)
def test_what_strings_hold_is_not_counted(value: Any) -> None:
    check_values(json.dumps(value).encode())


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps([1] * (VALUES + 1)).encode(),
        json.dumps([""] * (VALUES + 1)).encode(),
        json.dumps(['"'] * (VALUES + 1)).encode(),
        json.dumps([{}] * (VALUES + 1)).encode(),
        json.dumps({str(n): n for n in range(VALUES + 1)}).encode(),
        b"[" * (VALUES + 1),
        b'{"a":' * (VALUES + 1),
    ],
)
def test_values_are_counted_without_parsing(raw: bytes) -> None:
    with pytest.raises(OversizedBody):
        check_values(raw)


def test_strings_that_never_end_are_passed_over_once() -> None:
    """Each is one match, however many quotes it holds: counting stays linear."""
    hostile = b'",\\' * 1000
    assert len(sizes._STRING.findall(hostile)) <= 2
    assert len(sizes._STRING.findall(b'"' + b"\\\\" * 1000)) == 1
