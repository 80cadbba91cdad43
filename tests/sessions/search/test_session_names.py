"""Sessions by a part of their names: the index finds what a look at every row would."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection

from sessions.actions.accounts.teams import local_team
from sessions.actions.search.indexing import merged
from sessions.models import Session, SessionName, Team
from sessions.models.search import session_names
from sessions.models.search.session_names import GRAMS, NAMES, with_name

pytestmark = pytest.mark.django_db

MADE = (
    ('Fix the "quoted" Füße at 100 % ~wq', "run-A1", "claude-code", "claude-sonnet-4-5"),
    ("It's a heron's c:\\path", "7f3c_9a", "codex", "gpt-5"),
    ("港の切符売り場", "b\u00e9\u00e9", "", ""),
    ("heroheroher", "x", "pi", "o3"),
)
SOUGHT = (
    "quoted", "QUOTED", '"q', "Füße", "100 %", "%", "_9", "n-A1", "claude", "sonnet-4", "\\p", "\\",
    "'s", "切符", "港の切", "éé", "heron", "heroherohero", "o3", "x", "zq", "t\nr", "nothing here",
)  # fmt: skip


@pytest.fixture(params=["index", "walk"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Few sessions are found by the index, many on a walk."""
    if request.param == "walk":
        monkeypatch.setattr(session_names, "WALKS", (1, 3))
        monkeypatch.setattr(session_names, "FEW", -1)
    return str(request.param)


@pytest.fixture
def team() -> Team:
    return local_team()


@pytest.fixture
def other_team() -> Team:
    return Team.objects.create(slug="theirs", name="Theirs")


def made(team: Team) -> list[Session]:
    return [
        Session.objects.create(team=team, **dict(zip(NAMES, names, strict=True))) for names in MADE
    ]


def found(team: Team, text: str, names: tuple[str, ...] = NAMES) -> set[str]:
    rows = with_name(Session.objects.for_team(team), [team.pk], text, names=names, limit=9)
    return set(rows.values_list("external_id", flat=True))


@pytest.mark.store
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("text", SOUGHT)
def test_a_part_of_any_name_is_found(team: Team, text: str) -> None:
    made(team)
    asked = text.lower()
    wanted = {names[1] for names in MADE if any(asked in name.lower() for name in names)}
    assert found(team, text) == wanted


@pytest.mark.store
def test_the_index_names_those_and_not_the_others(team: Team, other_team: Team) -> None:
    made(team)
    Session.objects.create(team=other_team, external_id="theirs", title="A heron")
    mine = Session.objects.get(team=team, external_id="7f3c_9a")
    assert session_names._few([team.pk], "heron's") == [mine.pk]
    assert found(team, "heron") == {"7f3c_9a"}
    assert found(other_team, "heron") == {"theirs"}
    assert found(team, "codex", ("title", "external_id")) == set()


@pytest.mark.store
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 9])
@pytest.mark.usefixtures("way")
def test_of_many_the_first_come(team: Team, limit: int) -> None:
    gulls = [Session.objects.create(team=team, external_id=f"gull {n}") for n in range(5)]
    made(team)
    rows = with_name(Session.objects.for_team(team), [team.pk], "gull", limit=limit)
    assert list(rows[: limit + 1]) == gulls[::-1][: limit + 1]
    up = with_name(
        Session.objects.for_team(team), [team.pk], "gull", order=("external_id",), limit=limit
    )
    assert list(up[: limit + 1]) == gulls[: limit + 1]


Change = Callable[[Session], object]
CHANGES: dict[str, Change] = {
    "saved": lambda one: (setattr(one, "title", "A kestrel"), one.save()),
    "updated": lambda one: Session.objects.filter(pk=one.pk).update(title="A kestrel"),
    "made of many": lambda one: (one.delete(), Session.objects.bulk_create([renamed(one)])),
}


def renamed(one: Session) -> Session:
    return Session(team=one.team, external_id=one.external_id, title="A kestrel")


@pytest.mark.store
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_new_is_found_at_once_and_what_was_no_more(team: Team, change: str) -> None:
    one = made(team)[1]
    CHANGES[change](one)
    assert found(team, "kestrel") == {"7f3c_9a"}
    assert session_names._few([team.pk], "heron's") == []
    assert SessionName.objects.count() == len(MADE)


@pytest.mark.store
def test_a_deleted_session_leaves_no_gram(team: Team) -> None:
    for one in made(team):
        one.delete()
    assert not SessionName.objects.exists()
    if connection.vendor == "sqlite":
        assert b"~wq" in _blocks(), "it is only marked as removed"
        for _ in merged():
            pass
        assert b"~wq" not in _blocks()


def _blocks() -> bytes:
    with connection.cursor() as cursor:
        # The name of our own table.
        cursor.execute(f"SELECT block FROM {GRAMS}_data")
        return b"".join(bytes(block) for (block,) in cursor.fetchall())
