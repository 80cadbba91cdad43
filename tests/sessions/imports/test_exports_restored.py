"""import(export(x)) is x: with edits, runs, policies, reviews, notes and sub-agents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.context.session import Usage
from compaction.policies.policy import Policy, Step, to_dict
from compaction.redaction.redact import Masker
from compaction.strategies.offload import Offload
from sessions import importers
from sessions.actions.accounts.teams import local_team
from sessions.actions.imports.imports import begin_import, run_import
from sessions.actions.imports.uploads import BodyFile, begin_upload
from sessions.actions.live import folds
from sessions.actions.live.managed import catch_up, plan_at, record_context
from sessions.actions.policies.policies import version_of
from sessions.actions.record.append import append, link_parents
from sessions.actions.record.checks import parts
from sessions.actions.record.export import export
from sessions.actions.record.exported import TABLES
from sessions.actions.record.measure import measure
from sessions.importers import NotALog, records
from sessions.importers.exported import ROWS
from sessions.models import (
    Entry,
    ImportFile,
    ModelCall,
    Pin,
    Review,
    ReviewItem,
    Run,
    Session,
    StepNote,
    Team,
)
from tests.sessions import reviewing
from tests.sessions.live import appends
from tests.sessions.made import count, reading, session, user

pytestmark = [pytest.mark.django_db, pytest.mark.store]

OFTEN = Policy("often", steps=(Step("offload", Offload(age=2, batch=2)),))
SECRET = "sk-ant-api03-" + "Zq8R" * 20


@pytest.fixture(autouse=True)
def no_folds() -> Iterator[None]:
    folds.forget_all()
    yield
    folds.forget_all()


def recorded(team: Team) -> Session:
    """A session with a compaction, its review, a note, and sub-agents."""
    item = reviewing.item(team)
    found = item.revision.run.session
    reviewing.judge(item, reviewing.member(team))
    StepNote.objects.create(session=found, step=2, text="Look here.", author_name="ann")
    for number in range(1, 5):
        child = session(user("Look."), external_id=f"s1/agent-{number}")
        child.parent = "s1"
        measure(append(team, child, count, source="test").session)
    link_parents(team)
    return found


def managed(team: Team) -> Session:
    """A live session whose results are offloaded, with a pin and odd characters."""
    version_of(team, "often", to_dict(OFTEN), preset=False)
    found = appends.live("run", policy="often")
    appends.send(found, appends.user("Find the port \x00 \ud800 in the settings.", id="first"))
    for step in range(1, 8):
        appends.send(found, appends.reads(f"t{step}", f"src/f{step}.py"))
        appends.send(found, appends.result(f"t{step}", f"line {step}\n" * 400))
        record_context(catch_up(found), "anthropic")
    message = found.messages.get(seq=1)
    Pin.objects.get_or_create(session=found, message=message)
    measure(found)
    return found


def lines_of(found: Session, masker: Masker | None = None) -> list[dict[str, Any]]:
    # A file is what was written: tuples become lists, and so on.
    return [json.loads(json.dumps(line)) for line in export(found, masker)]


def imported(team: Team, lines: list[dict[str, Any]], folder: Path) -> ImportFile:
    path = folder / "export.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = begin_import(team, [("export.jsonl", str(path), path.stat().st_size)], None)
    run_import(run, count, lambda *_: None)
    return run.files.get()


def compared(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what names this server's policies and contexts."""
    names = {"policy"}
    left = [line for line in lines if line["is"] not in names]
    ids = {line["id"]: str(n) for n, line in enumerate(left) if line["is"] == "context"}
    for line in left:
        if line["is"] == "context":
            line["id"] = ids[line["id"]]
        if line["is"] == "call":
            line["context"] = ids.get(line["context"], line["context"])
    return left


@pytest.mark.parametrize("made", [recorded, managed])
def test_it_comes_back_as_it_was(made: Callable[[Team], Session], tmp_path: Path) -> None:
    found = made(local_team())
    before = lines_of(found)
    there = Team.objects.create(slug="there", name="there")
    if made is recorded:
        reviewing.Membership.objects.create(
            user=reviewing.get_user_model().objects.get(username="ann"), team=there, role="reviewer"
        )
    file = imported(there, before, tmp_path)
    assert (file.state, file.problems) == ("new", [])
    again = Session.objects.get(team=there, external_id=found.external_id)
    for a, b in zip(compared(lines_of(again)), compared(before), strict=True):
        assert a == b, {k: (a[k], b[k]) for k in a if a[k] != b[k]}
    assert [one for part in parts() for one in part.findings] == []
    known = imported(there, before, tmp_path)
    assert (known.state, known.new_messages) == ("known", 0)


def test_a_managed_session_hands_out_the_same_contexts(tmp_path: Path) -> None:
    found = managed(local_team())
    there = Team.objects.create(slug="there", name="there")
    imported(there, lines_of(found), tmp_path)
    again = Session.objects.get(team=there)
    runs = [Run.of(one, Run.Origin.MANAGED) for one in (found, again)]
    assert all(run is not None and run.head for run in runs)
    assert Entry.objects.filter(run=runs[1]).count() == Entry.objects.filter(run=runs[0]).count()
    for step in range(1, again.step_count + 1):
        mine, theirs = (plan_at(one, step) for one in (found, again))
        assert [b.sha for b in theirs.blocks] == [b.sha for b in mine.blocks]


def test_beside_the_original_it_is_a_copy(tmp_path: Path) -> None:
    found = recorded(local_team())
    lines = lines_of(found)
    [first] = [line for line in lines if line["is"] == "message" and line["seq"] == 1][:1]
    first["digest"] = "0" * 64  # the same id, other messages
    file = imported(local_team(), lines, tmp_path)
    assert file.state == "new"
    copy = Session.objects.get(external_id="export:s1")
    assert copy.children.filter(external_id="export:s1/agent-1").exists()


def test_reviews_by_strangers_are_left_out_and_said(tmp_path: Path) -> None:
    lines = lines_of(recorded(local_team()))
    file = imported(Team.objects.create(slug="there", name="there"), lines, tmp_path)
    assert file.problems == [
        "1 reviews are by people who are not members of this team, and were left out."
    ]


def test_an_upload_speaks_for_nobody(tmp_path: Path) -> None:
    """Anybody with a key that writes can upload; only members review."""
    team = local_team()
    lines = lines_of(recorded(team))
    Session.objects.all().delete()
    path = tmp_path / "export.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = begin_upload(team, [BodyFile("export.jsonl", path.read_bytes())])
    run_import(run, count, lambda *_: None)
    assert "1 reviews were left out" in run.files.get().problems[0]
    assert not Review.objects.exists() and not ReviewItem.objects.exists()
    assert StepNote.objects.get().author_name == "ann (imported)"


def test_masked_it_is_whole_without_secrets(tmp_path: Path) -> None:
    named = {"env": {"DB_PASSWORD": "hunter2-Very-Secret9"}, "names": ["a"], "lines": 'x"\\n"y'}
    asks = records.Message(
        "assistant", [{"type": "tool_use", "id": "t1", "name": "Bash", "input": named}], call="c1"
    )
    talk = session(
        user(f"Use {SECRET}."), asks, records.Call("c1", model="m", usage=Usage(uncached=5))
    )
    found = append(local_team(), talk, count, source="test").session
    lines = lines_of(found, Masker())
    assert SECRET not in json.dumps(lines) and "hunter2" not in json.dumps(lines)
    [block] = [line["sha_content"] for line in lines if line.get("tool") == "Bash"]
    assert (block["input"]["names"], block["input"]["lines"]) == (["a"], 'x"\\n"y')
    there = Team.objects.create(slug="there", name="there")
    assert imported(there, lines, tmp_path).state == "new"
    assert Session.objects.get(team=there).uncached_tokens == 5


def test_secrets_in_pairs_numbers_and_previews_are_masked(tmp_path: Path) -> None:
    given = {
        "headers": [{"name": "Cookie", "value": "sid=8fK2mQ9xLw3zR7vT"}, {"name": "a", "value": 7}],
        "raw": [["Set-Cookie", "sid=8fK2mQ9xLw3zR7vT"]],
        "card": 4111111111111111,
        "port": 8765,
    }
    asks = records.Message(
        "assistant", [{"type": "tool_use", "id": "t1", "name": "Get", "input": given}], call="c1"
    )
    cut = user("word " * 26 + SECRET)
    found = append(local_team(), session(cut, asks), count, source="test").session
    lines = lines_of(found, Masker())
    text = json.dumps(lines)
    assert "8fK2mQ9" not in text and "4111111" not in text and "sk-ant" not in text
    [block] = [line["sha_content"] for line in lines if line.get("tool") == "Get"]
    assert block["input"]["port"] == 8765 and block["input"]["headers"][1] == {
        "name": "a",
        "value": 7,
    }
    there = Team.objects.create(slug="there", name="there")
    assert imported(there, lines, tmp_path).state == "new"


def test_its_records_are_those_of_the_session() -> None:
    found = append(local_team(), reading(4), count, source="test").session
    data = "".join(json.dumps(line) + "\n" for line in lines_of(found)).encode()
    log = importers.parse(data, "any.jsonl")
    assert log.format == "contextlab-export"
    again = append(local_team(), log.sessions[0], count, source="copy")
    assert (again.messages, again.session.pk) == (0, found.pk)
    assert {table.name for table in TABLES} - {"session"} == ROWS


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
    from sessions.actions.record.restored import restore

    try:
        log = importers.parse("".join(json.dumps(one) + "\n" for one in lines).encode(), "x")
        if log.rows is not None:
            restore(team, log.rows, trusted=True)
    except NotALog:
        assert not Session.objects.filter(team=team).exists()
    assert [one for part in parts() for one in part.findings] == []
