"""import(export(x)) is x: with edits, runs, policies, reviews, notes and sub-agents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db.models import AutoField

from compaction.context.session import Usage
from compaction.policies.policy import Policy, Step, to_dict
from compaction.redaction.redact import Masker
from compaction.strategies.offload import Offload
from sessions import importers
from sessions.actions.accounts.teams import local_team
from sessions.actions.imports.export import export
from sessions.actions.imports.exported import TABLES, Table
from sessions.actions.imports.imports import begin_import, run_import
from sessions.actions.imports.uploads import BodyFile, begin_upload
from sessions.actions.live import folds
from sessions.actions.live.managed import catch_up, plan_at, record_context
from sessions.actions.policies.policies import version_of
from sessions.actions.record.append import append, link_parents
from sessions.actions.record.checks import parts
from sessions.actions.record.measure import measure
from sessions.importers import records
from sessions.importers.exported import ROWS
from sessions.models import (
    Entry,
    ImportFile,
    Pin,
    Review,
    ReviewItem,
    Revision,
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


def test_reviewed_compactions_keep_their_order(tmp_path: Path) -> None:
    team = local_team()
    found = managed(team)
    revisions = Revision.objects.filter(run__session=found).order_by("-pk")
    assert len(revisions) == 2
    for number, revision in enumerate(revisions):
        of = {"team": team, "revision": revision, "reason": ReviewItem.Reason.HAND}
        ReviewItem.objects.create(id=UUID(int=number), **of)
    before = compared(lines_of(found))
    reviewed = [line["revision"] for line in before if line["is"] == "review_item"]
    assert reviewed == sorted(reviewed)
    there = Team.objects.create(slug="there", name="there")
    imported(there, lines_of(found), tmp_path)
    again = Session.objects.get(team=there, external_id=found.external_id)
    assert compared(lines_of(again)) == before


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_no_table_is_in_an_order_of_random_ids(table: Table) -> None:
    is_random = not isinstance(table.model._meta.pk, AutoField)
    assert table.name == "session" or not (is_random and table.order == ("pk",))


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


PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_masked_it_has_its_images_and_no_secret_beside_them() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    media = [
        image,
        {"type": "image", "mimeType": "image/png", "data": PNG},
        {"type": "other", "inlineData": {"mimeType": "image/png", "data": PNG}},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
        {"type": "image_generation_call", "result": PNG},
        {"type": "tool_result", "tool_use_id": "t1", "content": [image]},
    ]
    text = {"type": "image", "media_type": "image/png", "data": f"key={SECRET}", "alt": SECRET}
    plain = {"type": "document", "source": {"media_type": "text/plain", "data": SECRET}}
    token = {"type": "other", "data": PNG}
    said = [*media, text, plain, token, {"type": "text", "text": f"Use {SECRET}."}]
    found = append(local_team(), session(records.Message("user", said)), count, source="test")
    masker = Masker()
    lines = lines_of(found.session, masker)
    kept = [line["sha_content"] for line in lines if line["is"] == "block"]
    assert kept[: len(media)] == media
    assert SECRET not in json.dumps(lines)
    assert kept[len(media) + 2]["data"] == "[SECRET_1]"


def test_its_records_are_those_of_the_session() -> None:
    found = append(local_team(), reading(4), count, source="test").session
    data = "".join(json.dumps(line) + "\n" for line in lines_of(found)).encode()
    log = importers.parse(data, "any.jsonl")
    assert log.format == "contextlab-export"
    again = append(local_team(), log.sessions[0], count, source="copy")
    assert (again.messages, again.session.pk) == (0, found.pk)
    assert {table.name for table in TABLES} - {"session"} == ROWS
