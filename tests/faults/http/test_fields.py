"""Fields, keys and ids that a client makes up: none moves or finds what is not its own."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions.actions.web.once import forget_answers
from sessions.models import Answer, Message, Session
from tests.sessions.conftest import elsewhere, jobs_wait, program, stranger, world
from tests.sessions.programs import Program, assert_problem
from tests.sessions.web.addresses import AT_LARGE, MAKES, PRIVATE
from tests.sessions.web.world import by_program, each

__all__ = ["elsewhere", "jobs_wait", "program", "stranger", "world"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

MESSAGES = "/sessions/run/messages"
SAID = {"role": "user", "content": "a parcel", "id": "m1"}


@pytest.mark.fault("B5")
@pytest.mark.store
def test_a_message_that_comes_again_after_its_key_was_forgotten(program: Program) -> None:
    first = program.post(MESSAGES, {"messages": [SAID]}, idempotency_key="k")
    Answer.objects.update(created=timezone.now() - timedelta(days=9))
    assert forget_answers() == 1
    again = program.post(MESSAGES, {"messages": [SAID]}, idempotency_key="k")
    assert (first["appended"], again["appended"], again["known"]) == (1, 0, 1)
    assert Message.objects.count() == 1


NOT_THEIRS: dict[str, Any] = {
    "seq": 99,
    "created": "2001-01-01T00:00:00Z",
    "created_at": "2001-01-01T00:00:00Z",
    "session": str(uuid.UUID(int=1)),
    "session_id": str(uuid.UUID(int=1)),
    "born": 77,
    "version": 1000,
}


@pytest.mark.fault("E9")
def test_fields_that_are_not_the_clients_to_set(program: Program, stranger: Program) -> None:
    team = {"team": stranger.team.slug, "team_id": str(stranger.team.pk)}
    before = timezone.now()
    program.ask("PUT", "/sessions/run", NOT_THEIRS | team | {"id": str(uuid.UUID(int=2))})
    program.post(MESSAGES, {"messages": [SAID | NOT_THEIRS | team]})
    session, message = Session.objects.get(), Message.objects.get()
    assert (session.team, session.external_id) == (program.team, "run")
    assert session.pk != uuid.UUID(int=2) and session.created >= before
    assert (message.seq, message.born, message.session_id) == (1, 1, session.pk)
    assert stranger.get("/sessions")["sessions"] == []
    for wrong in ({"messages": {}}, {"messages": [SAID], "call": []}, {"messages": [[SAID]]}):
        assert_problem(program.ask("POST", MESSAGES, wrong), 422)
    assert Message.objects.count() == 1


@pytest.mark.fault("H3")
def test_a_foreign_id_costs_what_a_missing_one_does(
    world: dict[str, Any], elsewhere: dict[str, Any], stranger: Program
) -> None:
    addresses = [a for a in PRIVATE if a.is_api and (a.method, a.route) not in MAKES]
    for address in each([a for a in addresses if a.route not in AT_LARGE]):
        asked = []
        for ids in (elsewhere, world, elsewhere):
            with CaptureQueriesContext(connection) as captured:
                assert by_program(stranger, address, ids).status_code == 404
            asked.append(len(captured))
        assert asked[1] == asked[2], (address.method, address.route)


@pytest.mark.fault("H4")
def test_what_is_addressed_from_outside_cannot_be_guessed(world: dict[str, Any]) -> None:
    ids = {name: value for name, value in world.items() if name.endswith("_id")}
    random = {name for name, value in ids.items() if isinstance(value, uuid.UUID)}
    assert {ids[name].version for name in random} <= {4, 7}
    assert len(random) > 15
    # Others have numbers, which only their team can use (H2).
    numbered = {"record", "member", "invitation", "board", "note", "subscription", "search"}
    assert set(ids) - random == {f"{name}_id" for name in numbered | {"step_note"}}
