"""A resumed session copies the lines of the first: its calls are billed once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Sum

from compaction.tokens import counted
from sessions.actions.accounts.teams import local_team
from sessions.actions.imports.imports import begin_import, run_import
from sessions.models import ImportFile, ModelCall, Session

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def lines(session: str, responses: list[str]) -> str:
    said: list[dict[str, Any]] = []
    for place, response in enumerate(responses):
        asked = {"role": "user", "content": f"Question {place}"}
        usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5}
        text = [{"type": "text", "text": f"Answer {place}"}]
        model = "claude-sonnet-4-6"
        answer = {"id": response, "role": "assistant", "model": model, "content": text}
        before = f"a{place - 1}" if place else None
        said.append({"type": "user", "uuid": f"u{place}", "parentUuid": before, "message": asked})
        answered = {"type": "assistant", "uuid": f"a{place}", "parentUuid": f"u{place}"}
        said.append({**answered, "message": {**answer, "usage": usage}})
    return "".join(json.dumps({**one, "sessionId": session}) + "\n" for one in said)


def imported(path: Path) -> ImportFile:
    run = begin_import(local_team(), [(str(path), str(path), 0)], job=None)
    run_import(run, counted, lambda done, total: None)
    return run.files.get()


def test_each_call_counts_once_in_whatever_order_and_however_often(tmp_path: Path):
    first, fork = tmp_path / "first.jsonl", tmp_path / "fork.jsonl"
    first.write_text(lines("first", ["msg_000000001", "msg_000000002"]))
    fork.write_text(lines("fork", ["msg_000000001", "msg_000000002", "msg_000000003"]))
    for path in (first, fork, fork, first):
        file = imported(path)
        copies = [one for one in file.problems if "2 model calls" in one]
        assert len(copies) == (path is fork)
    assert ModelCall.objects.count() == 5
    assert ModelCall.objects.aggregate(Sum("output"))["output__sum"] == 15
    resumed = Session.objects.get(external_id="fork")
    assert resumed.meta["copied_calls"] == 2
    assert resumed.calls.exclude(output=None).get().call == "msg_000000003"


def test_ids_of_our_own_are_no_copies(tmp_path: Path):
    for name in ("first", "second"):
        (tmp_path / f"{name}.jsonl").write_text(lines(name, ["call-1"]))
        assert not imported(tmp_path / f"{name}.jsonl").problems
    assert ModelCall.objects.aggregate(Sum("output"))["output__sum"] == 10
