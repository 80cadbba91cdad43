"""`contextlab calibrate`: logs in, figures out, nothing stored."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from compaction.cache.calibrate import Compared, ForecastSums
from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.importers import parse
from sessions.management.commands import calibrate
from sessions.models import Run
from sessions.models.record import tail
from tests.sessions.made import count

SAMPLES = Path(__file__).parents[1] / "importers" / "samples"


def line(number: int, at: int, read: int, write: int) -> list[dict[str, Any]]:
    """A Claude Code response that uses a tool, and its result."""
    time = f"2026-03-01T10:{at:02}:00.000Z"
    around = {"sessionId": "s", "version": "2", "timestamp": time}
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
        "cache_creation": {"ephemeral_5m_input_tokens": write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 9,
    }
    call = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"n": number}}
    answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "tide " * 400}
    said = {"id": f"m{number}", "role": "assistant", "model": "claude-opus-4-6", "usage": usage}
    return [
        {
            "type": "assistant",
            "uuid": f"a{number}",
            **around,
            "message": {**said, "content": [call]},
        },
        {
            "type": "user",
            "uuid": f"u{number}",
            **around,
            "message": {"role": "user", "content": [answer]},
        },
    ]


def write_log(path: Path) -> None:
    first = {
        "type": "user",
        "uuid": "u0",
        "sessionId": "s",
        "version": "2",
        "timestamp": "2026-03-01T10:00:00.000Z",
        "message": {"role": "user", "content": "Go."},
    }
    calls = [(0, 20_000, 30_000), (1, 50_000, 400), (2, 50_400, 400), (12, 20_000, 31_200)]
    lines = [first]
    for number, (at, read, write) in enumerate(calls, 1):
        lines += line(number, at, read, write)
    path.write_text("\n".join(map(json.dumps, lines)))


def write_search(path: Path) -> None:
    """A Codex log whose second call searched, and whose third read what the first had left."""
    said = {"type": "message", "role": "assistant"}
    said["content"] = [{"type": "output_text", "text": "Low tide."}]  # type: ignore[assignment]
    lines: list[tuple[str, dict[str, Any]]] = [("session_meta", {"id": "w"})]
    lines += [("turn_context", {"model": "gpt-5.6-sol"}), ("response_item", said)]
    for number, (prompt, read) in enumerate([(20_000, 0), (30_000, 19_200), (31_000, 19_200)]):
        usage = {"input_tokens": prompt, "cached_input_tokens": read, "output_tokens": 9}
        info = {"last_token_usage": usage, "total_token_usage": {"total_tokens": number + 1}}
        lines.append(("event_msg", {"type": "token_count", "info": info}))
        searched = {"type": "web_search_call", "status": "completed"}
        lines.append(("response_item", said if number else searched))
    rows = ({"timestamp": "2026-03-01T10:00:00Z", "type": t, "payload": p} for t, p in lines)
    path.write_text("\n".join(map(json.dumps, rows)))


def test_one_object_of_figures(tmp_path: Path) -> None:
    write_log(tmp_path / "s.jsonl")
    (tmp_path / "notes.txt").write_text("no log")
    out = StringIO()
    call_command("calibrate", str(tmp_path), "--json", stdout=out)
    found = json.loads(out.getvalue())
    assert (found["calls"], found["breaks"]) == (3, 1)
    # 30,800 tokens at the price of writing for five minutes, less that of reading.
    ttl = {
        "paid": 1,
        "found": 1,
        "missed": 0,
        "false_alarms": 0,
        "priced": 1,
        "cost_microusd": 177_096,
    }
    assert found["causes"] == found["per_format"]["claude-code"]["causes"] == {"ttl": ttl}
    assert found["error_sum_informed"] == found["error_share_informed"] == 0
    assert found["break_precision"] == found["break_recall"] == 1.0
    assert found["cache_read_reported"] == found["cache_read_informed"] == 120_400
    assert found["prompt_reported"] == 152_409
    assert abs(found["prompt_blind"] / found["prompt_reported"] - 1) < 0.02
    assert set(found["per_format"]) == {"claude-code"}
    assert [one["id"] for one in found["per_session"]] == ["s"]
    table = StringIO()
    call_command("calibrate", str(tmp_path), stdout=table)
    rows = [line.split() for line in table.getvalue().splitlines()]
    assert rows.count(["ttl", "1", "0", "0", "$0.18"]) == 2
    assert [row[0] for row in rows if row[1:2] == ["found"]] == ["claude-code", "all"]


@pytest.mark.django_db
def test_pages_tell_the_same_causes(tmp_path: Path) -> None:
    write_log(tmp_path / "s.jsonl")
    write_search(tmp_path / "w.jsonl")
    for path in (
        tmp_path / "s.jsonl",
        tmp_path / "w.jsonl",
        SAMPLES / "claude-code" / "claude-code.jsonl",
        SAMPLES / "codex-rollout" / "codex.jsonl",
    ):
        for one in parse(path.read_bytes(), path.name).sessions:
            measure(append(local_team(), one, count, source="test").session)
    out = StringIO()
    call_command("calibrate", str(tmp_path), str(SAMPLES), "--json", stdout=out)
    found = {
        one["id"]: {cause: row["paid"] for cause, row in one["causes"].items() if row["paid"]}
        for one in json.loads(out.getvalue())["per_session"]
    }
    for run in Run.objects.filter(origin="recorded", session__external_id__in=found):
        shown = Counter(card["kind"] for card in tail.causes(tail.stored(run)))
        assert shown == found[run.session.external_id]
    assert (found["s"], found["w"]) == ({"ttl": 1}, {"search": 1})


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no file or folder"):
        call_command("calibrate", str(tmp_path / "none"))
    with pytest.raises(CommandError, match="two calls"):
        call_command("calibrate", str(SAMPLES / "swe-agent-traj" / "swe-agent.traj"))


@pytest.mark.parametrize(
    ("costs", "cost", "said"),
    [
        ([None, None], None, "unknown"),
        ([None, 2_500_000], 2_500_000, "≥ $2.50"),
        ([1_000_000, 1_500_000], 2_500_000, "$2.50"),
        ([], 0, "$0"),
    ],
)
def test_a_cause_costs_what_is_known(costs: list[int | None], cost: int | None, said: str) -> None:
    false_alarm = Compared(1, 9, 9, 0, 0, 9, False, True, False, None, "ttl")
    sums = ForecastSums()
    sums.add([false_alarm, *(replace(false_alarm, paid=True, cost=one) for one in costs)])
    row = sums.as_dict()["causes"]["ttl"]
    assert (row["cost_microusd"], calibrate._cost(row)) == (cost, said)


def test_shares_of_nothing_are_unknown() -> None:
    found = ForecastSums().as_dict()
    assert found["break_recall"] is None and found["within_2_percent_informed"] is None
