"""Commands that read the store: show and tail."""

import dataclasses
import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from sessions.actions.accounts.teams import local_team
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.importers import records
from sessions.management.commands.tail import CallLine, TeamFollower
from sessions.models import AuditEntry
from sessions.models.record.values import MissingBlob
from tests.sessions import made

pytestmark = pytest.mark.django_db


def stored(steps: int = 12):
    session = append(local_team(), made.reading(steps), made.count, source="test").session
    measure(session)
    return session


def output(*arguments: object, **options: object) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out, **options)
    return out.getvalue()


def test_show_lists_what_stood_and_its_sum():
    stored()
    shown = json.loads(output("show", "s1", "--step", "2", "--json"))
    assert [row["kind"] for row in shown["blocks"]] == ["user", "assistant", "file"]
    assert shown["tokens"] == sum(row["tokens"] for row in shown["blocks"])
    assert (shown["origin"], shown["step"]) == ("recorded", 2)
    lines = output("show", "s1", "--step", "2").splitlines()
    assert len(lines) == 5
    assert "at step 2, recorded: 3 blocks" in lines[-2]
    assert lines[-1].startswith("Not assessed yet: ")
    assert "after 12 steps, recorded: " in output("show", "s1")


def test_show_of_a_simulated_run_marks_what_was_replaced():
    talk = [made.user("Read them.")]
    for step in range(1, 25):
        talk.append(made.reads(f"c{step}", f"t{step}", f"src/f{step}.py"))
        talk.append(made.result(f"t{step}", f"a line of file {step}\n" * 200))
    session = append(local_team(), made.session(*talk), made.count, source="test").session
    measure(session)
    simulate_session(session, "offload-first")
    shown = json.loads(output("show", str(session.pk), "--run", "offload-first", "--json"))
    replaced = [row for row in shown["blocks"] if row["replacement"]]
    assert replaced
    assert all(row["revision"] for row in replaced)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["missing"], "There is no session 'missing'"),
        (["s1", "--step", "99"], "No such step. The session has steps 1 to 13."),
        (["s1", "--run", "managed"], "There is no run 'managed'. Available runs: recorded."),
        (["s1", "--team", "theirs"], "There is no team 'theirs'."),
    ],
)
def test_show_says_what_is_wrong(arguments, sentence):
    stored()
    with pytest.raises(CommandError) as problem:
        output("show", *arguments)
    assert sentence in str(problem.value)
    assert problem.value.returncode == 2


def named(external_id: str):
    recorded = dataclasses.replace(made.reading(2), external_id=external_id)
    append(local_team(), recorded, made.count, source="test")


def test_sessions_are_listed_and_found_by_the_beginning_of_their_id():
    named("0a1b-first")
    named("0a1b-first/agent-1")
    listed = output("show")
    assert listed.startswith("0a1b-first")
    assert "2 steps" in listed
    assert json.loads(output("show", "0a1b", "--json"))["session"] == "0a1b-first"
    assert json.loads(output("show", "0a1b…t-1", "--json"))["session"] == "0a1b-first/agent-1"
    with pytest.raises(CommandError, match="no session '0a1'"):
        output("show", "0a1")
    named("0a1b-second")
    with pytest.raises(CommandError, match="begin with '0a1b': 0a1b-first, 0a1b-second"):
        output("show", "0a1b")


def test_tail_begins_with_the_last_calls():
    stored()
    lines = [json.loads(line) for line in output("tail", once=True, last=3, json=True).splitlines()]
    assert [line["step"] for line in lines] == [10, 11, 12]
    assert "unknown in" in output("tail", once=True, last=1)


@pytest.mark.parametrize(
    ("prompt", "full"), [(39_609, "39,609 in"), (None, "unknown in")], ids=["reported", "not"]
)
def test_the_share_of_the_window_is_that_of_the_prompt_beside_it(prompt, full):
    line = CallLine("s", 7, None, "m", prompt, 0, 5, 60_000, 1_000_000, None)
    assert full in str(line)
    share = "  4% of window" if prompt else "  next call 6% of window"
    assert str(line).endswith(share)


def test_following_tells_each_new_call_once():
    session = stored(2)
    follow = TeamFollower(local_team(), [], 0)
    assert list(follow.look()) == []
    append(session.team, made.reading(4), made.count, source="test")
    other = made.session(made.user("Hi."), records.Call("z1", model="m"), external_id="s2")
    append(session.team, other, made.count, source="test")
    assert [(line.session, line.step) for line in follow.look()] == [
        ("s1", 3),
        ("s1", 4),
        ("s2", 1),
    ]
    assert list(follow.look()) == []


def exported(*arguments: str) -> tuple[list[dict], str]:
    out, err = StringIO(), StringIO()
    call_command("export", *arguments, stdout=out, stderr=err)
    return [json.loads(line) for line in out.getvalue().splitlines()], err.getvalue()


def test_export_holds_every_message_and_call_in_order():
    stored(3)
    lines, said = exported("s1")
    rows = [*["message"] * 7, *["block"] * 7, *["call"] * 3, "run"]
    assert [line["is"] for line in lines] == ["export", "session", *rows]
    assert [line["seq"] for line in lines if line["is"] == "message"] == list(range(1, 8))
    assert "nothing found to mask" in said


def test_export_masks_by_default():
    secret = "sk-ant-api03-" + "Zq8R" * 20
    talk = made.session(made.user(f"Use {secret}, and write to mara@example.org."))
    append(local_team(), talk, made.count, source="test")
    lines, said = exported("s1")
    assert secret not in json.dumps(lines)
    assert "mara@" not in json.dumps(lines)
    assert "EMAIL" in said
    lines, said = exported("s1", "--unmasked")
    assert secret in json.dumps(lines)
    assert "nothing masked" in said


def test_export_never_writes_over_a_file(tmp_path):
    stored(1)
    there = tmp_path / "s1.jsonl"
    there.write_text("mine")
    with pytest.raises(CommandError):
        exported("s1", "-o", str(there))
    assert there.read_text() == "mine"
    exported("s1", "-o", str(tmp_path / "new.jsonl"))
    assert (tmp_path / "new.jsonl").read_text().count("\n") == 10


def test_an_export_that_fails_leaves_no_half_of_a_session(tmp_path, monkeypatch):
    def broken(session, masker):
        yield {"is": "session"}
        raise MissingBlob

    stored(1)
    monkeypatch.setattr("sessions.management.commands.export.export", broken)
    with pytest.raises(MissingBlob):
        exported("s1", "-o", str(tmp_path / "new.jsonl"))
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_cannot_begin_is_not_noted(tmp_path):
    stored(1)
    with pytest.raises(CommandError):
        exported("s1", "-o", str(tmp_path / "none" / "new.jsonl"))
    assert not AuditEntry.objects.exists()
    exported("s1", "-o", str(tmp_path / "new.jsonl"))
    assert AuditEntry.objects.get().action == "export.made"
