"""A request that is sent again gets its answer again."""

from __future__ import annotations

import pytest

from sessions.models import Answer, Job, Message, Session
from tests.sessions.programs import Program, assert_problem
from tests.sessions.web.api.talks import TALK

pytestmark = [pytest.mark.store, pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]


@pytest.mark.fault("B3")
def test_an_answer_is_given_again_for_the_same_key(talked: Program):
    body = {"messages": [{"role": "user", "content": "more"}]}
    first = talked.ask("POST", "/sessions/run/messages", body, idempotency_key="k1")
    again = talked.ask("POST", "/sessions/run/messages", body, idempotency_key="k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert (first.get("Idempotent-Replay"), again["Idempotent-Replay"]) == (None, "true")
    assert Message.objects.count() == 4
    other = talked.ask("POST", "/sessions/run/messages", {"messages": TALK}, idempotency_key="k1")
    assert "different request" in assert_problem(other, 422)["detail"]


def test_what_is_refused_may_be_sent_right_with_the_same_key(talked: Program):
    wrong = {"messages": [{"role": "user"}]}
    assert_problem(talked.ask("POST", "/sessions/run/messages", wrong, idempotency_key="k"), 422)
    right = {"messages": [{"role": "user", "content": "now"}]}
    assert talked.post("/sessions/run/messages", right, idempotency_key="k")["appended"] == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "schlüssel", "a\tb"])
def test_a_key_that_is_none(talked: Program, key: str):
    body = {"messages": TALK[:1]}
    answer = talked.ask("POST", "/sessions/run/messages", body, idempotency_key=key)
    assert assert_problem(answer, 422)["errors"][0]["pointer"] == "header Idempotency-Key"


def test_a_simulation_is_asked_for_once(talked: Program):
    wish = {"policy": "offload-first"}
    first = talked.post("/sessions/run/simulations", wish, idempotency_key="s")
    Job.objects.filter(kind="simulate").update(state="done")
    assert talked.post("/sessions/run/simulations", wish, idempotency_key="s") == first
    assert talked.post("/sessions/run/simulations", wish)["job"] != first["job"]


@pytest.mark.fault("B4")
def test_two_teams_may_use_the_same_key_and_the_same_id(program: Program, stranger: Program):
    body = {"messages": TALK[:1]}
    for one in (program, stranger):
        result = one.post("/sessions/run/messages", body, idempotency_key="k")
        assert (result["appended"], result["last_seq"]) == (1, 1)
    assert Session.objects.count() == 2
    assert Answer.objects.count() == 2
