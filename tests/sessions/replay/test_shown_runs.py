"""Which run a replay opens with: our contexts only if an agent says that it sends them."""

from __future__ import annotations

import pytest

from sessions.models import Session
from sessions.models.record.shown_runs import shown_origin
from tests.sessions.programs import Program

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]


def handed_out(program: Program) -> bool:
    return bool(program.get("/sessions/run/manifest")["session"]["handed_out"])


def test_a_managed_run_is_shown_once_it_is_known_to_be_sent(program: Program) -> None:
    program.ask("PUT", "/sessions/run", {"model": "claude-sonnet-4-5", "policy": "balanced"})
    session = Session.objects.get()
    assert shown_origin(session) == "recorded", "nothing was sent yet"
    program.post("/sessions/run/messages", {"messages": [{"role": "user", "content": "go"}]})
    assert shown_origin(session) == "recorded", "no context was asked for"
    assert not handed_out(program)
    context = program.get("/sessions/run/context")["context_id"]
    assert shown_origin(session) == "managed", "the next call probably gets it"
    said = {"messages": [{"role": "assistant", "content": "done"}]}
    program.post("/sessions/run/messages", said)
    assert shown_origin(session) == "recorded", "the call came without a context"
    assert handed_out(program), "so that the page says that it may have been another"
    program.get("/sessions/run/context")
    assert shown_origin(session) == "recorded"
    usage = {"input_tokens": 10, "output_tokens": 2}
    program.post("/sessions/run/calls", {"usage": usage, "context_id": context})
    assert shown_origin(session) == "managed"
