"""Which sessions a simulation is over."""

from __future__ import annotations

import pytest

from sessions.actions.lab.choices import NoChoice, chosen_sessions, read_choice, usual_choice
from sessions.models import Session, Team

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    made = Team.objects.create(slug="ours", name="Ours")
    for number in range(30):
        Session.objects.create(
            team=made,
            external_id=f"s{number:02}",
            agent="codex" if number % 3 else "claude",
            step_count=number,
            ended_at=number,
            error_count=number % 2,
        )
    return made


def names(team: Team, **choice: object) -> list[str]:
    return [one.external_id for one in chosen_sessions(team, read_choice(choice))]


def test_a_query_takes_the_newest_that_match_and_have_a_call(team):
    assert names(team, by="query", limit=2) == ["s29", "s28"]
    assert names(team, by="query", agent="claude", flags=["errors"]) == [
        "s27", "s21", "s15", "s09", "s03",
    ]  # fmt: skip
    assert "s00" not in names(team, by="query"), "it has no call"
    assert names(team, by="query", q="S07") == ["s07"]


def test_demo_sessions_are_left_out_unless_named_or_alone(team):
    Session.objects.create(team=team, external_id="demo:one", step_count=99, ended_at=99, demo=True)
    assert "demo:one" not in names(team, by="query")
    assert "demo:one" not in names(team, by="sample", n=400)
    assert names(team, by="hand", ids=["demo:one"]) == ["demo:one"]
    Session.objects.filter(demo=False).delete()
    assert names(team, by="query") == names(team, by="sample") == ["demo:one"]


def test_the_newest_that_have_calls_enough_and_those_that_still_run_last(team):
    Session.objects.create(team=team, external_id="runs", source="api", step_count=9, ended_at=99)
    Session.objects.create(
        team=team, external_id="over", source="api", step_count=9, ended_at=98, outcome="succeeded"
    )
    found = names(team, by="query", min_steps=9)
    assert (found[:2], found[-2:]) == (["over", "s29"], ["s09", "runs"])


def test_pages_begin_with_sessions_of_some_length_if_there_are_any(team):
    assert names(team, **usual_choice(team)) == [f"s{n:02}" for n in range(29, 9, -1)]
    Session.objects.filter(step_count__gte=5).delete()
    assert names(team, **usual_choice(team)) == ["s04", "s03", "s02", "s01"]


def test_a_sample_is_the_same_however_the_rows_were_made(team):
    drawn = names(team, by="sample", n=5, seed=7, min_steps=10)
    assert len(set(drawn)) == 5
    assert all(name >= "s10" for name in drawn)
    rows = list(Session.objects.filter(team=team).order_by("-external_id"))
    Session.objects.all().delete()
    for row in rows:
        Session.objects.create(team=team, external_id=row.external_id, step_count=row.step_count)
    assert names(team, by="sample", n=5, seed=7, min_steps=10) == drawn
    assert names(team, by="sample", n=5, seed=8, min_steps=10) != drawn
    assert len(names(team, by="sample", n=400)) == 29


def test_by_hand_takes_either_id_once_in_the_order_given(team):
    third = Session.objects.get(external_id="s03")
    assert names(team, by="hand", ids=["s09", str(third.pk), "s03"]) == ["s09", "s03"]


def test_sessions_of_another_team_are_not_there(team):
    other = Team.objects.create(slug="theirs", name="Theirs")
    theirs = Session.objects.create(team=other, external_id="theirs", step_count=3)
    for name in ("theirs", str(theirs.pk), "missing", "\x00"):
        with pytest.raises(NoChoice, match="no such session") as refused:
            names(team, by="hand", ids=[name])
        assert refused.value.field == "ids/0"
    assert "theirs" not in names(team, by="query", limit=500)


@pytest.mark.parametrize(
    ("choice", "field"),
    [
        ({}, "by"),
        ({"by": "hand"}, "ids"),
        ({"by": "hand", "ids": []}, "ids"),
        ({"by": "hand", "ids": [1]}, "ids"),
        ({"by": "hand", "ids": ["s05", "s00"]}, "ids/1"),
        ({"by": "query", "ids": ["s00"]}, "ids"),
        ({"by": "sample", "ids": ["s00"]}, "ids"),
        ({"by": "query", "limit": 0}, "limit"),
        ({"by": "query", "limit": 501}, "limit"),
        ({"by": "query", "limit": True}, "limit"),
        ({"by": "query", "q": 3}, "q"),
        ({"by": "query", "flags": "errors"}, "flags"),
        ({"by": "query", "flags": ["none"]}, "flags"),
        ({"by": "sample", "n": 501}, "n"),
        ({"by": "sample", "seed": -1}, "seed"),
        ({"by": "sample", "min_steps": 99}, "by"),
    ],
)
def test_what_is_no_choice_names_its_field(team, choice, field):
    with pytest.raises(NoChoice) as refused:
        names(team, **choice)
    assert refused.value.field == field
