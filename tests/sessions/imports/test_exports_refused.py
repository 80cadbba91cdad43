"""Exports that were changed are refused, or do no harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions import importers
from sessions.actions.accounts.teams import local_team
from sessions.actions.live.managed import catch_up, plan_at
from sessions.actions.record.append import append
from sessions.actions.record.checks import parts
from sessions.importers import NotALog
from sessions.models import (
    ModelCall,
    Session,
    Team,
)
from tests.sessions.imports.test_exports_restored import imported, lines_of, managed, no_folds
from tests.sessions.made import count, reading

__all__ = ["no_folds"]

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def test_another_version_is_refused() -> None:
    with pytest.raises(NotALog, match="another version"):
        importers.parse(b'{"is": "export", "version": 1}\n{"is": "session", "id": 1}')


def changed(lines: list[dict[str, Any]], name: str, column: str, value: Any) -> None:
    next(line for line in lines if line["is"] == name)[column] = value


@pytest.mark.parametrize(
    ("name", "column", "value", "sentence"),
    [
        ("block", "sha_content", {"type": "text", "text": "other"}, "not what its SHA-256 says"),
        ("block", "sha_content", 5, "block.sha_content: is not a block"),
        ("block", "sha_content", [1, {"type": 5}], "block.sha_content: is not a block"),
        ("block", "sha_content", {"type": {"a": 1}, "text": 5}, "sha_content: is not a block"),
        ("session", "external_id", "", "session.external_id: is not an id"),
        ("session", "external_id", "x\ud800y", "session.external_id: is not an id"),
        ("block", "position", 7, "it does not hold that"),
        ("block", "message", 99, "refers to a line that does not precede it"),
        ("block", "session", 2, "refers to a line that does not precede it"),
        ("message", "role", "wizard", "is not a role"),
        ("message", "key", "a\x00b", "message.key: is not text"),
        ("message", "seq", -1, "message.seq: "),
        ("message", "seq", "1", "message.seq: is not a value of its kind"),
        ("message", "seq", None, "message.seq: is missing"),
        ("message", "human", 1, "message.human: is not a value of its kind"),
        ("session", "title", "x" * 301, "session.title: "),
        ("session", "outcome", [], "session.outcome: is not text"),
        ("run", "origin", "invented", "is not one of the values"),
        ("call", "step", 10**30, "call.step: "),
        ("session", "step_count", 2**31 - 1, "session.step_count: is beyond"),
        ("run", "steps", 99, "run.steps: is beyond"),
        ("block", "kind", "no kind", "No figures can be computed"),
        ("session", "meta", [], "session.meta: is not an object"),
        ("session", "meta", {"a": "\ud800"}, "session.meta: has characters"),
        ("session", "overrides", {}, "session.overrides: has no policy"),
        ("session", "changed", "9999-12-31T23:59:59+00:00", "session.changed: is not a time"),
        ("session", "changed", "0001-01-01T00:00:00+14:00", "session.changed: "),
        ("session", "changed", "2026-01-01T00:00:00", "session.changed: is not a time"),
    ],
)
def test_what_does_not_fit_is_refused_whole(
    tmp_path: Path, name: str, column: str, value: Any, sentence: str
) -> None:
    lines = lines_of(append(local_team(), reading(3), count, source="test").session)
    changed(lines, name, column, value)
    there = Team.objects.create(slug="there", name="there")
    file = imported(there, lines, tmp_path)
    assert file.state == "refused"
    assert sentence in file.problems[0]
    assert not Session.objects.filter(team=there).exists()
    assert not ModelCall.objects.filter(session__team=there).exists()


_GONE = [[[0, 10**14]], [[3, 1]], [[2, 3], [3, 4]], [["a", 1]], [[1]]]


@pytest.mark.parametrize(
    "hostile",
    [
        {},
        {"writes": 1},
        {"step": "1"},
        {"step": None},
        {"window": 0},
        {"hidden": -1},
        {"scale": 0},
        {"counted": "many"},
        {"marks": [{"seen": "x"}]},
        {"marks": [], "failures": [1]},
        {"wanted": 5},
        {"pins": [[1]]},
        *({"gone": gone} for gone in _GONE),
        {"invented": 1},
    ],
)
def test_a_state_that_no_fold_has_is_refused(hostile: Any, tmp_path: Path) -> None:
    lines = lines_of(managed(local_team()))
    run = next(one for one in lines if one["is"] == "run" and one["origin"] == "managed")
    run["fold"] = run["fold"] | hostile if set(hostile) - {"writes"} else hostile
    file = imported(Team.objects.create(slug="there", name="there"), lines, tmp_path)
    assert file.state == "refused"
    assert "run.fold: is not the state of a run" in file.problems[0]


def test_a_state_of_another_policy_does_no_harm(tmp_path: Path) -> None:
    lines = lines_of(managed(local_team()))
    run = next(one for one in lines if one["is"] == "run" and one["origin"] == "managed")
    last = len([one for one in lines if one["is"] == "block"]) - 1
    run["fold"] |= {"marks": [{}] * 9, "failures": [0] * 9, "waiting": [None] * 9}
    run["fold"] |= {"pins": [10**9], "gone": [[1, last]]}
    there = Team.objects.create(slug="there", name="there")
    assert imported(there, lines, tmp_path).state == "new"
    assert plan_at(Session.objects.get(team=there), 3).blocks
    catch_up(Session.objects.get(team=there))


ANY = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just([]) | st.just({})


@settings(max_examples=60)
@given(data=st.data())
def test_a_changed_file_is_refused_or_whole(data: st.DataObject) -> None:
    team = Team.objects.create(name="x", slug=f"x{Team.objects.count()}")
    lines = lines_of(append(local_team(), reading(2), count, source="test").session)
    line = data.draw(st.sampled_from(lines))
    line[data.draw(st.sampled_from(sorted(line)))] = data.draw(ANY)
    from sessions.actions.imports.restored import restore

    try:
        log = importers.parse("".join(json.dumps(one) + "\n" for one in lines).encode(), "x")
        if log.rows is not None:
            restore(team, log.rows, trusted=True)
    except NotALog:
        assert not Session.objects.filter(team=team).exists()
    assert [one for part in parts() for one in part.findings] == []
