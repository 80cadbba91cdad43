"""Queries that are composed once: they find and write what the same querysets do."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from sessions.models import Job, Run, Session, Team
from sessions.models.web.statements import (
    Delete,
    Statement,
    StatementAmong,
    Update,
    _Composed,
    compose_all,
    given_columns,
    given_int,
    given_text,
    given_uuid,
    insert_object,
)

pytestmark = [pytest.mark.django_db, pytest.mark.store]

OF_TEAM = Statement(
    lambda: (
        Session.objects.select_related("team")
        .filter(team_id=given_uuid("team"), step_count__gte=given_int("steps"))
        .order_by("external_id")
    )
)


@pytest.fixture
def team() -> Team:
    return Team.objects.create(name="One", slug="one")


@pytest.fixture
def stored(team: Team) -> list[Session]:
    return [
        Session.objects.create(team=team, external_id=f"s{n}", step_count=n, meta={"n": [n]})
        for n in range(5)
    ]


def test_rows_are_objects_as_a_queryset_makes_them(team: Team, stored: list[Session]):
    found = OF_TEAM.rows(team=team.pk, steps=2)
    assert found == stored[2:]
    first = found[0]
    names = [field.attname for field in Session._meta.concrete_fields]
    usual = Session.objects.get(pk=first.pk)
    assert [getattr(first, name) for name in names] == [getattr(usual, name) for name in names]
    with CaptureQueriesContext(connection) as asked:
        assert first.team == team
    assert not asked.captured_queries
    first.title = "Renamed"
    first.save()
    assert Session.objects.get(pk=first.pk).title == "Renamed"


def test_each_execution_has_its_own_values(team: Team, stored: list[Session]):
    other = Team.objects.create(name="Two", slug="two")
    assert OF_TEAM.rows(team=other.pk, steps=0) == []
    assert OF_TEAM.first(team=team.pk, steps=4) == stored[4]
    assert OF_TEAM.first(team=team.pk, steps=5) is None


def test_values_come_as_tuples_in_their_types(team: Team, stored: list[Session]):
    some = Statement(
        lambda: Session.objects.filter(external_id=given_text("name")).values_list(
            "id", "meta", "created", "measured", "step_count"
        )
    )
    usual = Session.objects.values_list("id", "meta", "created", "measured", "step_count")
    assert some.rows(name="s3") == [usual.get(external_id="s3")]
    assert some.column(name="s3") == [stored[3].pk]


def test_deferred_columns_stay_away():
    light = Statement(lambda: Session.objects.defer("meta").filter(external_id=given_text("n")))
    team = Team.objects.create(name="T", slug="t")
    Session.objects.create(team=team, external_id="x", meta={"a": 1})
    found = light.first(n="x")
    assert found.get_deferred_fields() == {"meta"}
    assert found.meta == {"a": 1}


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 300])
def test_many_values_are_asked_for_in_powers_of_two(team: Team, stored: list[Session], count: int):
    among = StatementAmong(
        lambda names: Session.objects.filter(
            team_id=given_uuid("team"), external_id__in=names
        ).values_list("external_id")
    )
    wanted = [f"s{n}" for n in range(count)]
    found = {row[0] for row in among.rows([*wanted, *wanted], team=team.pk)}
    assert found == {one.external_id for one in stored} & set(wanted)


def test_numbers_are_compared_as_numbers(team: Team, stored: list[Session]):
    among = StatementAmong(
        lambda steps: Session.objects.filter(step_count__in=steps).values_list("external_id"),
        given_int,
    )
    assert {row[0] for row in among.rows([1, 4, 9])} == {"s1", "s4"}


def test_an_update_writes_columns_and_counts_rows(team: Team, stored: list[Session]):
    columns = ("title", "meta", "window", "policy_version_id")
    keep = Update(
        lambda: (Session.objects.filter(pk=given_uuid("id")), given_columns(Session, columns))
    )
    values = {"title": "T", "meta": {"a": [1, None]}, "window": None, "policy_version_id": None}
    assert keep.run(id=stored[1].pk, **values) == 1
    stored[1].refresh_from_db()
    assert {name: getattr(stored[1], name) for name in columns} == values
    assert keep.run(id=team.pk, **values) == 0
    rise = Update(
        lambda: (Session.objects.filter(pk=given_uuid("id")), {"version": F("version") + 1})
    )
    rise.run(id=stored[1].pk)
    rise.run(id=stored[1].pk)
    stored[1].refresh_from_db()
    assert stored[1].version == 2


def test_an_object_is_inserted_once(team: Team):
    job = Job(team=team, kind="tend", payload={"session": "x"}, dedupe="same")
    assert insert_object(job, known=True)
    again = Job(team=team, kind="tend", payload={}, dedupe="same")
    assert not insert_object(again, known=True)
    assert Job.objects.get() == job
    assert Job.objects.get().payload == {"session": "x"}


def test_a_read_again_session_forgets_what_it_pointed_at(team: Team, stored: list[Session]):
    one, parent = stored[0], stored[1]
    Session.objects.filter(pk=one.pk).update(title="New", parent=parent, sparkline=[[1]])
    assert (one.parent, one.sparkline) == (None, [])
    one.reread()
    assert (one.title, one.parent, one.sparkline) == ("New", parent, [[1]])
    one.delete()
    with pytest.raises(Session.DoesNotExist):
        Session(pk=one.pk or team.pk).reread()


def test_a_deletion_deletes_what_its_queryset_finds(team: Team, stored: list[Session]):
    small = Delete(
        lambda: Job.objects.filter(team_id=given_uuid("team"), version__lte=given_int("version"))
    )
    for version in range(4):
        Job.objects.create(team=team, kind="tend", payload={}, version=version)
    assert small.run(team=team.pk, version=2) == 3
    assert small.run(team=team.pk, version=2) == 0
    assert Job.objects.get().version == 3


def test_constants_are_written_out_and_values_are_not(team: Team):
    title = "it's 100%s; --"
    Session.objects.create(team=team, external_id="x", title=title, step_count=3)
    constant = Statement(
        lambda: Session.objects.filter(
            title=title, step_count=3, measured=False, external_id=given_text("name")
        ).values_list("title")
    )
    with CaptureQueriesContext(connection):
        assert constant.rows(name="x") == [(title,)]
        assert constant.rows(name="y") == []
    rename = Update(
        lambda: (Session.objects.filter(title=title, team_id=given_uuid("team")), {"title": "50%"})
    )
    assert rename.run(team=team.pk) == 1
    assert Session.objects.get().title == "50%"


@pytest.mark.skipif(connection.vendor != "sqlite", reason="about SQLite's planner")
def test_a_condition_of_a_partial_index_is_seen(team: Team):
    session = Session.objects.create(team=team, external_id="x")
    with CaptureQueriesContext(connection) as asked:
        assert Run.of(session, Run.Origin.MANAGED) is None
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {asked.captured_queries[0]['sql']}")
        assert "one_managed_run" in str(cursor.fetchall())


def test_a_percent_sign_of_a_query_stays():
    with connection.cursor() as cursor:
        for value in ("a", "b"):
            cursor.execute("SELECT CAST(%s AS varchar(9)) || '%%s'", [value])
            assert cursor.fetchone() == (f"{value}%s",)


def test_all_can_be_composed_before_their_first_use(team: Team, stored: list[Session]):
    named = Statement(lambda: Session.objects.filter(external_id=given_text("name")))
    among = StatementAmong(lambda names: Session.objects.filter(external_id__in=names))
    renamed = Update(
        lambda: (
            Session.objects.filter(external_id=given_text("name")),
            given_columns(Session, ["title"]),
        )
    )
    compose_all()
    with patch.object(_Composed, "of", side_effect=AssertionError("composed again")):
        assert named.rows(name="s1") == stored[1:2]
        assert len(among.rows(["s1", "s2", "s3"])) == 3
        assert renamed.run(name="s1", title="Renamed") == 1
