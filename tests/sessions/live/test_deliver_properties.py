"""However a conversation is split into batches, resent or sent as a whole, the rows are equal."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions.actions.accounts.teams import local_team
from sessions.actions.live.deliver import Once, deliver, delivery
from sessions.actions.live.live_sessions import SessionFields, put_session
from sessions.models import Run, Session

pytestmark = [pytest.mark.django_db, pytest.mark.store]

Json = dict[str, Any]

texts = st.text(max_size=12)
ids = st.sampled_from(["t1", "t2", "t3"])
uses = st.builds(
    lambda id, name, path: {
        "type": "tool_use", "id": id, "name": name, "input": {"file_path": path},
    },
    ids, st.sampled_from(["Read", "Bash", "x" * 130]), texts,
)  # fmt: skip
results = st.builds(
    lambda id, text, bad: {
        "type": "tool_result", "tool_use_id": id, "content": text, "is_error": bad,
    },
    ids, texts, st.booleans(),
)  # fmt: skip
said = st.builds(lambda text: {"type": "text", "text": text}, texts)
anthropic = st.one_of(
    st.builds(lambda content: {"role": "user", "content": content}, texts),
    st.builds(
        lambda content: {"role": "user", "content": content},
        st.lists(results | said, min_size=1, max_size=3),
    ),
    st.builds(
        lambda content, call: {"role": "assistant", "content": content, **call},
        st.lists(uses | said, min_size=1, max_size=3),
        st.sampled_from([{}, {}, {"call": "c1"}, {"call": "c2"}]),
    ),
)
openai = st.one_of(
    st.builds(lambda text: {"role": "system", "content": text}, texts),
    st.builds(lambda id, text: {"role": "tool", "tool_call_id": id, "content": text}, ids, texts),
    st.builds(
        lambda id, path: {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": id, "function": {"name": "read_file", "arguments": path}}],
        },
        ids, texts,
    ),
)  # fmt: skip
talks = st.lists(anthropic | openai, min_size=1, max_size=8)
marks = st.lists(st.booleans(), min_size=8, max_size=8)
cuts = st.lists(st.integers(1, 8), max_size=4)

usual = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


def named(talk: list[Json], keyed: list[bool]) -> list[Json]:
    """Some of the messages with an id of the sender's."""
    return [
        {**message, "id": f"k{number}"} if keyed[number] else message
        for number, message in enumerate(talk)
    ]


def begun() -> Session:
    return put_session(local_team(), "run", SessionFields(model="gpt-5"))[0]


def send(session: Session, messages: list[Json], history: bool, once: Once | None = None) -> Json:
    batch = delivery({"messages": messages, "history": history})
    return deliver(session, batch, once=once, now=1).answer


def rows(session: Session) -> list[Any]:
    """All that a delivery writes of a session, by numbers instead of keys of rows."""
    session.refresh_from_db()
    left_out = {"id", "team_id", "policy_version_id", "session_id", "message_id"}
    left_out |= {"created", "changed", "version"}

    def plain(queryset: Any, order: str) -> list[Json]:
        found = queryset.order_by(order).values()
        return [{k: v for k, v in row.items() if k not in left_out} for row in found]

    run = Run.objects.get(session=session, origin=Run.Origin.RECORDED)
    return [
        plain(Session.objects.filter(pk=session.pk), "pk"),
        plain(session.messages, "seq"),
        plain(session.blocks, "position"),
        list(session.blocks.order_by("position").values_list("message__seq", flat=True)),
        plain(session.calls, "step"),
        (run.steps, run.head, run.fold),
    ]


@usual
@given(talk=talks, keyed=marks, cuts=cuts)
def test_any_batches_give_the_rows_of_one(talk: list[Json], keyed: list[bool], cuts: list[int]):
    messages = named(talk, keyed)
    ends = sorted({min(cut, len(messages)) for cut in cuts} | {len(messages)})
    with transaction.atomic():
        session = begun()
        for start, end in zip([0, *ends], ends, strict=False):
            send(session, messages[start:end], history=False)
        in_pieces = rows(session)
        transaction.set_rollback(True)
    with transaction.atomic():
        session = begun()
        send(session, messages, history=False)
        assert rows(session) == in_pieces
        transaction.set_rollback(True)


@usual
@given(talk=talks, keyed=marks, cuts=cuts)
def test_whole_histories_give_the_rows_of_appending(
    talk: list[Json], keyed: list[bool], cuts: list[int]
):
    messages = named(talk, keyed)
    ends = sorted({min(cut, len(messages)) for cut in cuts} | {len(messages)})
    with transaction.atomic():
        session = begun()
        for end in ends:
            send(session, messages[:end], history=True)
        whole = rows(session)
        transaction.set_rollback(True)
    with transaction.atomic():
        session = begun()
        for start, end in zip([0, *ends], ends, strict=False):
            send(session, messages[start:end], history=False)
        assert rows(session) == whole
        transaction.set_rollback(True)


@usual
@given(talk=talks, keyed=marks, again=st.lists(st.sampled_from(["once", "history"]), max_size=3))
def test_retries_add_nothing(talk: list[Json], keyed: list[bool], again: list[str]):
    messages = named(talk, keyed)
    with transaction.atomic():
        session = begun()
        first = send(session, messages, history=False, once=Once("k", "r"))
        before = rows(session)
        for how in again:
            if how == "once":
                assert send(session, messages, history=False, once=Once("k", "r")) == first
            else:
                assert send(session, messages, history=True)["appended"] == 0
        assert rows(session) == before
        transaction.set_rollback(True)
