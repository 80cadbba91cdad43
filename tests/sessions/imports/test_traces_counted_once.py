"""Usage counts once, whichever spans have it, in whichever conversations and requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions.actions.accounts.teams import local_team
from sessions.models import ModelCall, Session, Team
from tests.sessions.imports.test_copied_calls import imported, lines
from tests.sessions.imports.traced_trees import (
    TREES,
    Said,
    Spans,
    Traced,
    requests,
    send,
    team,
    text,
)


def one_response_in_two_groups(made: Traced) -> Traced:
    """Model calls of two conversations and of none, which have responses in common."""
    history: list[Said] = [text("user", "Find the kelp.")]
    for number in range(3):
        named = {"response.id": f"msg_of_the_harbor_{number}"}
        answer = text("assistant", f"At pier {number}.")
        said = {"gen_ai.input.messages": history, "gen_ai.output.messages": [answer]}
        for conversation, quiet in (("a", False), ("b", False), ("", number == 1)):
            of = {"conversation.id": conversation} if conversation else {}
            span = made.begin("chat", None, **named, **of)
            made.used(span, number + 1)
            if not quiet:
                span.set_attributes({key: json.dumps(one) for key, one in said.items()})
            made.end(span)
        history += [answer, text("user", "And then?")]
    return made


GROUPS = one_response_in_two_groups(Traced()).ended()


def used(team: Team) -> list[tuple[int, int]]:
    """Input and output of all calls that have usage, as sessions sum them up."""
    calls = ModelCall.objects.filter(session__team=team).exclude(output=None)
    found = sorted(((one.uncached or 0) + (one.cache_read or 0), one.output or 0) for one in calls)
    sums = Session.objects.filter(team=team).values_list(
        *("usage_calls", "uncached_tokens", "cache_read_tokens", "output_tokens")
    )
    counted, fresh, read, output = (sum(column) for column in zip(*sums, strict=True))
    assert counted == len(found)
    assert (fresh + read, output) == tuple(map(sum, zip(*found, strict=True)))
    return found


@pytest.mark.django_db
@settings(max_examples=20, deadline=None)
@given(requests((GROUPS,)), st.data())
def test_a_response_in_two_groups_counts_once(sent: list[Spans], data: st.DataObject):
    ours, again = team(), data.draw(st.sampled_from(sent))
    send(ours, [*sent, again])
    assert used(ours) == [(1000, 10), (2000, 20), (3000, 30)]
    counts = Session.objects.filter(team=ours, external_id__in="ab")
    assert list(counts.values_list("step_count", flat=True)) == [3, 3]


@pytest.mark.django_db
def test_usage_of_spans_without_content_counts_once():
    ours, spans = team(), TREES["silent"]
    for _ in range(2):
        send(ours, [[one] for one in spans])
        assert used(ours) == [(1000, 10), (2000, 20), (3000, 30), (4000, 40), (9000, 90)]
    calls = ModelCall.objects.filter(session__team=ours, session__parent=None).order_by("step")
    assert list(calls.values_list("cache_read", "output")) == [
        *((0, 10), (0, 20), (0, 30), (1500, 40)),
    ]


@pytest.mark.django_db
def test_a_span_without_content_has_its_usage_where_the_call_around_it_is():
    made, ours = Traced(), team()
    call = made.begin("chat", None, **{"conversation.id": "kelp"})
    own = made.begin("chat", call)
    for span in (call, own):
        made.used(span, 1)
    call.set_attribute("gen_ai.input.messages", json.dumps([text("user", "Find the kelp.")]))
    made.end(own)
    made.end(call)
    for sent in ([made.ended()], [made.ended()[::-1][:1], made.ended()]):
        send(ours, sent)
        assert Session.objects.get(team=ours).external_id == "kelp"
        assert used(ours) == [(1000, 10)]


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["chatcmpl-123", "msg_\0of_the_harbor", "m" * 201])
def test_an_id_that_no_response_has_alone_is_none(name: str):
    made, ours = Traced(), team()
    for conversation in "ab":
        named = {"conversation.id": conversation, "response.id": name}
        span = made.begin("chat", None, **named)
        made.used(span, 1)
        made.end(span)
    send(ours, [made.ended()])
    assert used(ours) == [(1000, 10), (1000, 10)]


@pytest.mark.django_db
def test_a_call_of_a_log_counts_once_beside_its_span(tmp_path: Path):
    ours, made, name = local_team(), Traced(), "msg_of_the_harbor"
    (tmp_path / "log.jsonl").write_text(lines("log", [name]))
    span = made.begin("chat", None, **{"response.id": name})
    made.used(span, 1)
    made.end(span)
    imported(tmp_path / "log.jsonl")
    send(ours, [made.ended()])
    assert used(ours) == [(100, 5)]
    Session.objects.all().delete()
    send(ours, [made.ended()])
    imported(tmp_path / "log.jsonl")
    assert used(ours) == [(1000, 10)]
