"""A team is exported whole, and comes back as it was: every model is in the file, or said not to
be."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db.models import ForeignKey, Model
from django.utils import timezone

from compaction.policies.policy import to_dict
from sessions.actions.accounts import audit
from sessions.actions.accounts.teams import local_team
from sessions.actions.erasure.people import team_rows
from sessions.actions.imports.exported import TABLES, Line, Table
from sessions.actions.imports.team_export import export_team
from sessions.actions.imports.team_import import import_team
from sessions.actions.imports.team_tables import LEFT_OUT, TEAM_TABLES
from sessions.actions.live import folds
from sessions.actions.policies.policies import preset_version, version_of
from sessions.actions.record.append import touch
from sessions.actions.record.checks import parts
from sessions.actions.record.measure import measure
from sessions.importers.decoded import NotALog
from sessions.models import (
    Artefact,
    AuditEntry,
    Blob,
    Board,
    Budget,
    Delivery,
    Gathering,
    Hold,
    IncomingMasking,
    MaskedCount,
    MaskingRule,
    Membership,
    Note,
    NotificationChannel,
    NotificationRule,
    Opening,
    Policy,
    PolicyVersion,
    Quota,
    Retry,
    ReviewRules,
    Rollout,
    Run,
    SavedSearch,
    SentRecitation,
    Session,
    Share,
    Subscription,
    Team,
    ToolGraph,
    Use,
)
from tests.sessions.imports.test_exports_restored import OFTEN, managed, recorded

pytestmark = [pytest.mark.django_db, pytest.mark.store]

THEN = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@pytest.fixture(autouse=True)
def no_folds() -> Iterator[None]:
    folds.forget_all()
    yield
    folds.forget_all()


def filled() -> Team:
    """A team with a row in every table that is exported."""
    team = local_team()
    found, live = recorded(team), managed(team)
    version_of(team, "often", to_dict(OFTEN) | {"summary": "Another."}, preset=False)
    shipped = preset_version(team, "passthrough")
    own = PolicyVersion.objects.get(policy__name="often", number=1)
    Team.objects.filter(pk=team.pk).update(active=own)
    rollout = Rollout.objects.create(team=team, version=own, before=shipped, state="running")
    Session.objects.filter(pk=live.pk).update(rollout=rollout)
    _memory(team, found, live)
    budget = Budget.objects.create(team=team, scope="session", tokens=9)
    Use.objects.create(budget=budget, key=str(found.pk), used_tokens=5, reserved_tokens=3)
    Quota.objects.create(team=team, storage_bytes=10**12)
    ReviewRules.objects.create(team=team, share=33)
    SavedSearch.objects.create(team=team, name="mine", query="flag=lost")
    made = {"kind": "slack", "name": "ops", "address": b"sealed", "shown": "hooks.example.com"}
    channel = NotificationChannel.objects.create(team=team, **made)
    NotificationRule.objects.create(team=team, event="budget", channel=channel, threshold=80)
    MaskedCount.objects.create(team=team, session=found, name="email", count=2, at=THEN)
    rule = {"name": "ours", "kind": "words", "text": "Zanzibar", "replacement": "[OURS]"}
    MaskingRule.objects.create(team=team, by="ann", added=THEN, **rule)
    IncomingMasking.objects.create(team=team, began=THEN)
    ToolGraph.objects.get_or_create(
        session=live, number=1, defaults={"document": {}, "seq": 1, "step": 1}
    )
    run = Run.of(live, Run.Origin.MANAGED)
    SentRecitation.objects.create(run=run, step=2, data=zlib.compress(b"Still open: the port."))
    Retry.objects.create(session=live, message=live.messages.get(seq=2), step=2, of_step=1)
    live.refresh_from_db()
    measure(live)
    return team


def _memory(team: Team, found: Session, live: Session) -> None:
    blob = Blob.of(team.pk, b"So far: port 8417.")
    blob.save()
    Artefact.objects.create(session=live, kind="summary", digest="d", sha=blob.sha, maker="tests")
    Opening.objects.create(session=live, wanted="board", sha=blob.sha, tokens=6, fixed=THEN)
    board = Board.objects.create(team=team, kind="session", name=str(live.pk), session=live)
    task = Board.objects.create(team=team, kind="task", name="port")
    share = Share.objects.create(
        team=team, session=found, key="k", number=1, cause="by_hand", summary="Done.", sent=THEN
    )
    for of in (board, task):
        Note.objects.create(board=of, key="n", kind="fact", text="8417", by="share", share=share,
                            session=found, evidence={str(found.pk): 2})  # fmt: skip
    Subscription.objects.create(session=live, kind="team")
    Delivery.objects.create(share=share, session=live)
    Gathering.objects.create(session=live, board=task, blocks=3, remembered={"a": [1]})


def emptied(team: Team) -> Team:
    """Another team with the same people, after all of the first is gone."""
    there = Team.objects.create(slug="there", name="there")
    Membership.objects.filter(team=team).update(team=there)
    Team.objects.filter(pk=team.pk).update(active=None)
    Session.objects.filter(team=team).delete()
    for rows in team_rows(team, None):
        rows.delete()
    preset_version(there, "passthrough")
    return there


def rows_of(place: Path) -> Counter[str]:
    """How many rows of each table a file has."""
    with zipfile.ZipFile(place) as archive:
        lines = [
            json.loads(line)
            for name in archive.namelist()
            if name.endswith(".jsonl")
            for line in archive.read(name).splitlines()
        ]
    return Counter(line["is"] for line in lines)


def changed(place: Path, change: Any) -> Path:
    """A copy of a file with other contents, whole as a zip."""
    made = place.with_name("changed.zip")
    with zipfile.ZipFile(place) as old, zipfile.ZipFile(made, "w") as new:
        for name, data in change({one: old.read(one) for one in old.namelist()}).items():
            new.writestr(name, data)
    return made


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    team = filled()
    first, again = tmp_path / "first.zip", tmp_path / "again.zip"
    assert export_team(team, first, audit.COMMAND) == 6
    held = rows_of(first)
    names = {*TEAM_TABLES, *(table.name for table in TABLES)}
    assert {name for name in names if not held[name]} == set()
    there = emptied(team)
    assert import_team(there, first, audit.COMMAND) == []
    assert [one for part in parts() for one in part.findings] == []
    export_team(there, again, audit.COMMAND)
    with zipfile.ZipFile(first) as a, zipfile.ZipFile(again) as b:
        assert a.namelist() == b.namelist()
        for name in a.namelist()[:-1]:
            for one, other in zip(a.open(name), b.open(name), strict=True):
                assert json.loads(one) == json.loads(other), name
    live = Session.objects.get(team=there, external_id="run")
    assert Board.objects.get(kind="session").name == str(live.pk)
    assert Session.objects.get(external_id="s1").children.count() == 4
    channel = NotificationChannel.objects.get(team=there)
    assert (bytes(channel.address), bytes(channel.secret)) == (b"", b"")
    actions = AuditEntry.objects.filter(named="team").order_by("pk")
    assert [(one.team_id, one.action) for one in actions] == [
        (team.pk, "export.made"), (there.pk, "import.asked"), (there.pk, "export.made")
    ]  # fmt: skip


def _belongs(model: type[Model], seen: frozenset[type[Model]] = frozenset()) -> bool:
    """Whether rows of a model belong to a team, by themselves or by what they refer to."""
    refers = {one.related_model for one in model._meta.concrete_fields if one.is_relation}
    return Team in refers or any(
        _belongs(one, seen | {model}) for one in refers - seen - {model} if one
    )


def test_every_model_of_a_team_is_exported_or_said_not_to_be() -> None:
    ours = apps.get_app_config("agent_sessions").get_models()
    belongs = {one.__name__ for one in ours if one is not Team and _belongs(one)}
    exported = {one.model.__name__ for one in (*TABLES, *TEAM_TABLES.values())} - {"Team"}
    assert belongs - exported == set(LEFT_OUT)
    assert all(LEFT_OUT.values())


@pytest.mark.parametrize("table", [*TABLES, *TEAM_TABLES.values()], ids=lambda table: table.name)
def test_columns_that_refer_are_written_unless_to_what_is_not_exported(table: Table) -> None:
    written = {one.name for one in table.columns()} | table.left_out
    left = {
        one.related_model.__name__
        for one in table.model._meta.concrete_fields
        if isinstance(one, ForeignKey) and one.name not in written
    }
    assert left <= {"Team", "User", "Simulation"}


def test_erased_sessions_and_holds_stay_where_they_are(tmp_path: Path) -> None:
    team = local_team()
    found = recorded(team)
    Hold.objects.create(team=team, kind="team", reason="Case 7", by="ann")
    Session.objects.filter(pk=found.pk).update(content_erased=timezone.now())
    place = tmp_path / "team.zip"
    assert export_team(team, place, audit.COMMAND) == 4
    there = Team.objects.create(slug="there", name="there")
    import_team(there, place, audit.COMMAND)
    assert not Session.objects.filter(team=there, external_id="s1").exists()
    assert [hold.team for hold in Hold.objects.filter(released=None)] == [team]


def _flip(files: dict[str, bytes]) -> dict[str, bytes]:
    return files | {"team.jsonl": files["team.jsonl"].replace(b"8417", b"8418")}


def _less(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if name != "sessions/00000001.jsonl"}


def _newer(files: dict[str, bytes]) -> dict[str, bytes]:
    return files | {"manifest.json": files["manifest.json"].replace(b'sion": 1', b'sion": 2')}


def _blank(files: dict[str, bytes]) -> dict[str, bytes]:
    return files | {"manifest.json": b"{"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_flip, "team.jsonl is not what its SHA-256 says"),
        (_less, "its files are not those of its manifest"),
        (_newer, "another version"),
        (_blank, "its manifest cannot be read"),
    ],
)
def test_what_is_damaged_is_refused_before_anything_is_stored(
    change: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = local_team()
    _memory(team, recorded(team), managed(team))
    place = tmp_path / "team.zip"
    export_team(team, place, audit.COMMAND)
    there = Team.objects.create(slug="there", name="there")
    monkeypatch.setattr("sessions.actions.imports.team_import._Importing", None)
    with pytest.raises(CommandError, match=said):
        call_command("import_logs", str(changed(place, change)), team="there")
    assert not Session.objects.filter(team=there).exists()
    noted = AuditEntry.objects.get(team=there)
    assert (noted.action, noted.detail) == ("import.refused", {"why": "not readable"})


def test_a_file_that_breaks_off_or_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    team = filled()
    place = tmp_path / "team.zip"
    export_team(team, place, audit.COMMAND)
    with pytest.raises(CommandError, match="is not empty"):
        call_command("import_logs", str(place), team=team.slug)
    there = Team.objects.create(slug="there", name="there")
    short = tmp_path / "short.zip"
    short.write_bytes(place.read_bytes()[:-100])
    with pytest.raises(NotALog, match="not a whole zip"):
        import_team(there, short, audit.COMMAND)
    with pytest.raises(CommandError):
        call_command("import_logs", str(short), team="there")
    assert not Session.objects.filter(team=there).exists()
    assert not Policy.objects.filter(team=there).exists()


def test_what_a_killed_export_left_is_removed_by_the_next(tmp_path: Path) -> None:
    recorded(local_team())
    left, at_work = tmp_path / ".contextlab-team.left", tmp_path / ".contextlab-team.work"
    left.write_bytes(b"half")
    nowhere = tmp_path / ".contextlab-team.nowhere"
    nowhere.symlink_to(tmp_path / "none")
    with at_work.open("wb") as file:
        flock(file, LOCK_EX)
        call_command("export", to=tmp_path / "team.zip")
    assert sorted(tmp_path.iterdir()) == [nowhere, at_work, tmp_path / "team.zip"], "none is made"


def test_a_failed_export_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(local_team())
    place = tmp_path / "team.zip"

    def busy(session: Session, *_: Any, **__: Any) -> list[Line]:
        touch(Session.objects.get(pk=session.pk))
        return [{"is": "export"}]

    monkeypatch.setattr("sessions.actions.imports.team_export.export", busy)
    with pytest.raises(CommandError, match="changes faster"):
        call_command("export", to=place)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    call_command("export", to=place)
    with pytest.raises(CommandError, match="already exists"):
        call_command("export", to=place)
    assert list(tmp_path.iterdir()) == [place]
    with pytest.raises(CommandError, match="Name a session"):
        call_command("export")
