"""Masking what comes in: every way in stores masks, and histories are recognized."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from compaction.redaction.team_rules import TeamRule
from compaction.tokens import counted as count
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.imports.export import export
from sessions.actions.imports.imports import run_import
from sessions.actions.imports.uploads import BodyFile, begin_upload
from sessions.actions.ingestion import arrivals
from sessions.actions.jobs.attempts import attempt
from sessions.actions.jobs.jobs import claim
from sessions.actions.masking import rules
from sessions.actions.record.erased import erase, erase_unused
from sessions.models import (
    Edit,
    Import,
    Job,
    MaskedCount,
    MaskingRule,
    Message,
    RefusedRequest,
    Session,
    SkippedRecord,
    Team,
)
from tests.sessions.masking.stored import places_of
from tests.sessions.programs import Program

pytestmark = [pytest.mark.django_db, pytest.mark.store, pytest.mark.usefixtures("jobs_wait")]

KEY = "sk-ant-api03-" + "Ab3dEf9h" * 10
NAME = "Mara Olsen"
RULE = TeamRule("CUSTOMER", "words", NAME, "[CUSTOMER]")
CALL = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": f"I call for {NAME}."},
        {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": f"curl {KEY}"}},
    ],
}
RESULT = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": f"key {KEY}"}],
}
FIRST = {"role": "user", "content": f"Use {KEY} for {NAME}."}


@pytest.fixture
def masking(program: Program) -> Team:
    rules.add(program.team, RULE, COMMAND)
    rules.mask_incoming(program.team, True, COMMAND)
    return program.team


def kept(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"messages": list(messages), "system": f"Serve {NAME}.", "history": True, **more}


def rewinds() -> int:
    return Edit.objects.filter(strategy__in=Edit.LEFT).count()


def texts_of(program: Program) -> str:
    return json.dumps(program.get("/sessions/run/context?format=blocks"))


def not_stored() -> None:
    assert places_of(KEY) == []
    assert set(places_of(NAME)) <= {"MaskingRule.text"}


def test_without_the_setting_content_is_stored_as_sent(program: Program):
    rules.add(program.team, RULE, COMMAND)
    program.post("/sessions/run/messages", kept(FIRST))
    assert "Blob.data" in places_of(KEY)


@pytest.mark.usefixtures("masking")
def test_what_an_agent_sends_is_stored_masked(program: Program):
    about = {"title": f"For {NAME}", "metadata": {"for": NAME, "token": KEY}}
    program.ask("PUT", "/sessions/run", about)
    tools = [{"name": "Bash", "description": f"for {NAME}", "input_schema": {"type": "object"}}]
    program.post("/sessions/run/messages", kept(FIRST, tools=tools, note=f"{NAME} {KEY}"))
    program.post("/sessions/run/messages", {"messages": [CALL, RESULT]})
    assert Message.objects.count() == 5, "tools, system, and three"
    not_stored()
    found = texts_of(program)
    assert "[CUSTOMER]" in found and "toolu_1" in found
    counts = program.get("/sessions/run/masked")["masked"]
    assert counts == {"API_KEY": 4, "CUSTOMER": 5}


@pytest.mark.usefixtures("masking")
def test_steps_and_contexts_of_managed_sessions_are_made_of_masks(program: Program):
    program.ask("PUT", "/sessions/run", {"policy": "offload-first", "model": "claude-sonnet-4-5"})
    program.post("/sessions/run/steps", kept(FIRST))
    program.post("/sessions/run/steps", {"messages": [CALL, RESULT]})
    answer = program.get("/sessions/run/context")
    assert KEY not in json.dumps(answer) and "[API_KEY_" in json.dumps(answer)
    not_stored()


@pytest.mark.usefixtures("masking")
def test_a_history_sent_again_is_the_same(program: Program):
    program.post("/sessions/run/messages", kept(FIRST, CALL))
    program.post("/sessions/run/messages", kept(FIRST, CALL, RESULT))
    before = dict(MaskedCount.objects.values_list("name", "count"))
    program.post("/sessions/run/messages", kept(FIRST, CALL, RESULT))
    assert (Message.objects.count(), rewinds()) == (4, 0)
    assert dict(MaskedCount.objects.values_list("name", "count")) == before
    more = {**CALL["content"][1], "input": {"command": f"curl {KEY}", "timeout": 5}}
    completed = {**CALL, "content": [CALL["content"][0], more]}
    program.post("/sessions/run/messages", kept(FIRST, completed, RESULT, FIRST))
    assert (Message.objects.count(), rewinds()) == (5, 0)


@pytest.mark.parametrize("history", [True, None])
def test_a_history_is_recognized_after_rules_changed(program: Program, history: bool | None):
    """Stored as sent, then masked, then masked by another rule, then without it, then as sent."""

    def send(*messages: Any) -> None:
        program.post("/sessions/run/messages", kept(*messages) | {"history": history})

    send(FIRST, CALL)
    rules.mask_incoming(program.team, True, COMMAND)
    send(FIRST, CALL, RESULT)
    row = rules.add(program.team, RULE, COMMAND)
    said = {"role": "assistant", "content": f"{NAME} has it."}
    send(FIRST, CALL, RESULT, said)
    rules.remove(row, COMMAND)
    send(FIRST, CALL, RESULT, said, FIRST)
    rules.mask_incoming(program.team, False, COMMAND)
    send(FIRST, CALL, RESULT, said, FIRST, said)
    assert (Message.objects.count(), rewinds()) == (7, 0)


def test_a_history_that_really_diverges_is_still_a_rewind(program: Program, masking: Team):
    program.post("/sessions/run/messages", kept(FIRST, CALL))
    rules.remove(MaskingRule.objects.get(), COMMAND)
    program.post("/sessions/run/messages", kept(FIRST, {"role": "assistant", "content": "No."}))
    assert rewinds() == 1


def imported(team: Team, name: str, text: str) -> Import:
    run = begin_upload(team, [BodyFile(name, text.encode())])
    run_import(run, count, lambda *_: None)
    return run


def test_imports_are_stored_masked_and_known_again(masking: Team):
    lines = [{"role": "user", "content": f"{NAME} {KEY}"}, CALL, RESULT]
    log = json.dumps(lines)
    imported(masking, "log.json", log)
    again = imported(masking, "log.json", log)
    assert again.files.get().state == "known"
    assert Message.objects.count() == 3
    not_stored()


def test_records_that_are_skipped_are_kept_masked(masking: Team):
    lines = [
        {"type": "user", "uuid": "u1", "sessionId": "s", "message": FIRST},
        {"type": "new-kind", "about": f"{NAME} {KEY}"},
    ]
    imported(masking, "s.jsonl", "\n".join(map(json.dumps, lines)))
    assert SkippedRecord.objects.filter(reason="unknown").exists()
    not_stored()


def test_unmasked_exports_are_restored_masked(program: Program):
    program.ask("PUT", "/sessions/run", {"policy": "offload-first", "title": f"For {NAME}"})
    program.post("/sessions/run/messages", kept(FIRST, CALL, RESULT))
    program.get("/sessions/run/context")
    session = Session.objects.get()
    text = "".join(json.dumps(line) + "\n" for line in export(session, None))
    assert KEY in text
    erase_unused(program.team, erase(program.team, Session.objects.all()))
    not_stored()
    there = Team.objects.create(slug="there", name="There")
    rules.add(there, RULE, COMMAND)
    rules.mask_incoming(there, True, COMMAND)
    run = imported(there, "export.jsonl", text)
    assert run.files.get().state == "new", run.files.get().problems
    assert MaskedCount.objects.filter(team=there, name="CUSTOMER").exists()
    not_stored()


@pytest.mark.usefixtures("masking")
@pytest.mark.parametrize("cut", ["", "}"])
def test_refused_requests_are_kept_masked(program: Program, cut: str):
    body = {"messages": [{"role": "robot", "content": f"{NAME} {KEY}"}]}
    program.ask("POST", "/sessions/run/messages", json.dumps(body).encode() + cut.encode())
    arrivals.flush()
    assert bytes(RefusedRequest.objects.get().body)
    not_stored()


@pytest.mark.usefixtures("masking")
def test_traces_are_stored_masked(program: Program):
    said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": f"{NAME} {KEY}"}]}])
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": "harbor-1",
        "gen_ai.request.model": "claude-sonnet-5",
        "gen_ai.input.messages": said,
        "gen_ai.output.messages": said.replace("user", "assistant"),
    }
    span = {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": "b7ad6b7169203331",
        "name": "chat",
        "startTimeUnixNano": "1764000000000000000",
        "endTimeUnixNano": "1764000001000000000",
        "attributes": [
            {"key": name, "value": {"stringValue": value}} for name, value in attributes.items()
        ],
    }
    program.post("/traces", {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    job = Job.objects.get(kind="import")
    claimed = claim(job.pk)
    assert claimed is not None and claimed.token is not None
    assert attempt(claimed.pk, claimed.token)
    assert Message.objects.count() >= 1
    not_stored()


def test_masks_do_not_tell_secrets_of_another_team(program: Program, stranger: Program):
    """The same secret has the same mask within a team only."""
    masks = []
    for one in (program, stranger):
        rules.mask_incoming(one.team, True, COMMAND)
        one.post("/sessions/run/messages", kept(FIRST, RESULT))
        found = re.findall(r"\[API_KEY_\d+\]", texts_of(one))
        assert len(found) == 2 and len(set(found)) == 1
        masks += found
    assert len(set(masks)) == 2
