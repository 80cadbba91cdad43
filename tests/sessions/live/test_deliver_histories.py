"""Appends of whole histories: growth, rewinds, tools and system prompts."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from sessions.actions.accounts.teams import local_team
from sessions.actions.live import conversation
from sessions.actions.live.answer import standing_of
from sessions.actions.live.managed import catch_up
from sessions.actions.record.append import append
from sessions.importers.delivered.delivered import Unacceptable
from sessions.models import Block, Message, ModelCall, Revision, Run, Session
from tests.sessions.live.appends import Json, live, reads, result, says, send, user
from tests.sessions.made import count, reading

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def standing(session: Session) -> list[str]:
    run = Run.objects.get(session=session, origin=Run.Origin.RECORDED)
    blocks = session.blocks.exclude(entries__run=run).order_by("position")
    return list(blocks.values_list("preview", flat=True))


def test_a_history_that_grows_adds_its_tail():
    session, said = live(), [user("a"), says("b"), user("c"), says("d")]
    for end in (1, 2, 4, 4):
        answer = send(session, *said[:end])
    assert (answer["appended"], answer["known"]) == (0, 4)
    assert standing(session) == ["a", "b", "c", "d"]


def test_a_history_that_diverges_is_a_rewind_as_often_as_it_does():
    session, base = live(), [user("a"), says("b")]
    for tail in ("c", "d", "c", "d"):
        send(session, *base, user(tail))
    assert standing(session) == ["a", "b", "d"]
    assert list(Revision.objects.order_by("number").values_list("trigger", flat=True)) == [
        "rewind", "rewind", "rewind",
    ]  # fmt: skip
    again = send(session, *base, user("d"), says("e"))
    assert (again["appended"], again["known"]) == (1, 3)
    assert again["budget"]["used"] == sum(
        Block.objects.filter(preview__in="abde", message__seq__in=[1, 2, 6, 7]).values_list(
            "tokens", flat=True
        )
    )


def edits(tool_call: str, **given: Any) -> Json:
    use = {"type": "tool_use", "id": tool_call, "name": "Edit", "input": given}
    return {"role": "assistant", "content": [use]}


def test_a_reply_that_the_agent_completes_is_the_stored_one():
    """Claude Code sends `replace_all` with each edit, though the model left it out."""
    session, asked = live(), user("a")
    first, second = edits("t1", path="a", new="1"), edits("t2", path="b", new="2")
    send(session, asked, first, history=True)
    now = [asked, edits("t1", all=False, path="a", new="1"), result("t1", "ok")]
    send(session, *now, second, history=True)
    now += [edits("t2", all=False, path="b", new="2"), result("t2", "ok")]
    answer = send(session, *now, says("done"), history=True)
    assert (answer["appended"], answer["known"], answer["steps"]) == (2, 4, 3)
    assert not Revision.objects.exists()
    assert standing(session)[1] == "Edit a"


@pytest.mark.parametrize(
    "other",
    [
        edits("t1", path="a", new="2"),
        edits("t9", path="a", new="1"),
        {**edits("t1", path="a", new="1"), "role": "user"},
        says("b"),
    ],
)
def test_a_reply_that_the_agent_changes_is_a_rewind(other: Json):
    session, asked = live(), user("a")
    send(session, asked, edits("t1", path="a", new="1"), result("t1", "ok"), history=True)
    send(session, asked, other, result("t1", "ok"), history=True)
    assert list(Revision.objects.values_list("trigger", flat=True)) == ["rewind"]
    assert len(standing(session)) == 3


def test_a_history_that_ends_early_takes_back_what_came_after_it():
    session, said = live(), [user("a"), says("b"), user("c"), says("d")]
    usage = {"input_tokens": 7, "output_tokens": 5}
    send(session, *said, usage=usage)
    answer = send(session, *said[:3], history=True)
    assert (answer["appended"], answer["known"], answer["job"] is None) == (0, 3, False)
    assert standing(session) == ["a", "b", "c"]
    # Two more attempts without news in between, each with the same number of messages.
    for end in (1, 1):
        assert send(session, *said[:end], history=True)["known"] == end
    assert standing(session) == ["a"]
    assert [one.trigger for one in Revision.objects.all()] == ["rewind", "rewind"]
    assert send(session, user("a"), says("new"), history=True)["appended"] == 1
    assert standing(session) == ["a", "new"]
    left = ModelCall.objects.get(step=2)
    assert (left.uncached, left.output) == (7, 5)
    visible = Block.objects.filter(preview__in=["a", "new"]).values_list("tokens", flat=True)
    assert answer["budget"]["used"] > live().used_tokens == sum(visible)


@pytest.mark.parametrize("before", [{"history": True}, {"history": False, "tools": []}])
def test_the_rest_of_a_history_is_refused_after_a_change_that_adds_no_message(before: Json):
    session, said = live(), [user("a"), says("b"), user("c"), says("d")]
    known = send(session, *said, history=True, tools=[{"name": "Bash"}])
    rest = {"history": False, "after": known["last_seq"]}
    other = send(session, *(said[:2] if before["history"] else []), **before)
    assert (other["appended"], other["recorded_revision"]) == (0, known["recorded_revision"] + 1)
    with pytest.raises(Unacceptable, match="send the whole history") as refused:
        send(session, user("e"), **rest, recorded_revision=known["recorded_revision"])
    assert refused.value.pointer == "/recorded_revision"
    answer = send(session, user("e"), **rest, recorded_revision=other["recorded_revision"])
    assert answer["appended"] == 1
    with pytest.raises(Unacceptable, match="the session has") as refused:
        send(session, user("f"), **rest)
    assert refused.value.pointer == "/after"


def test_what_is_served_goes_back_as_well():
    session, said = live(), [user("a"), says("b"), user("c")]
    for end in (1, 2, 3):
        send(session, *said[:end])
        catch_up(live())
    assert [block.text for block in catch_up(live()).blocks] == ["a", "b", "c"]
    send(session, user("a"), history=True)
    plan = catch_up(live())
    assert (plan.step, [block.text for block in plan.blocks]) == (2, ["a"])


def test_an_unsaid_history_goes_back_only_when_it_can_be_nothing_else():
    prompt, said = {"role": "system", "content": "s"}, [user("a"), says("b"), user("c"), says("d")]

    def stands(name: str, *sent: Json, stored: list[Json] = said) -> list[str]:
        session = live(name)
        send(session, *stored)
        send(session, *sent)
        return [text for text in standing(session) if text != "s"]

    assert stands("first message again", user("a"), stored=[user("a")]) == ["a"]
    assert stands("one message", user("a"))[-1] == "a"
    assert stands("the whole", *said) == ["a", "b", "c", "d"]
    assert stands("two messages", *said[:2]) == ["a", "b"]
    assert stands("three messages", *said[:3]) == ["a", "b", "c"]
    assert stands("not from the beginning", *said[1:3])[:4] == ["a", "b", "c", "d"]
    assert stands("with its prompt", prompt, user("a"), stored=[prompt, *said]) == ["a"]
    other = {"role": "system", "content": "t"}
    assert "d" in stands("with another prompt", other, user("a"), stored=[prompt, *said])
    keyed = [one | {"id": f"k{number}"} for number, one in enumerate(said)]
    assert stands("ids of its own", *keyed[:2], stored=keyed) == ["a", "b", "c", "d"]
    nothing = live("nothing but its prompt")
    send(nothing, prompt, *said)
    send(nothing, prompt, history=True)
    assert standing(nothing) == ["s", "a", "b", "c", "d"]


def test_what_was_sent_says_whether_it_is_the_whole_history():
    session = live()
    send(session, user("a"), says("b"))
    assert send(session, user("a"), says("b"), history=False)["appended"] == 2
    assert send(session, user("x"), history=True)["appended"] == 1
    assert standing(session) == ["x"]


def test_two_equal_words_are_no_history():
    session = live()
    send(session, user("go on"), says("fine"), user("go on"))
    assert send(session, user("go on"), says("well"))["appended"] == 2
    assert send(session, user("go on"))["appended"] == 1


def test_asking_to_cache_changes_no_message():
    def marked(text: str, *, mark: bool) -> Json:
        block: Json = {"type": "text", "text": text}
        return user("") | {"content": [block | ({"cache_control": {}} if mark else {})]}

    session = live()
    send(session, marked("a", mark=True), says("b"))
    answer = send(session, marked("a", mark=False), says("b"), marked("c", mark=True))
    assert (answer["known"], answer["appended"]) == (2, 1)


def test_nulls_and_the_order_of_fields_change_no_message():
    session, block = live(), {"citations": None, "text": "b", "type": "text"}
    send(session, user("a"), {"role": "assistant", "content": [block]})
    answer = send(session, user("a"), says("b"), user("c"), history=True)
    assert (answer["known"], answer["appended"]) == (2, 1)
    assert standing(session) == ["a", "b", "c"]


def test_the_order_of_a_call_s_input_changes_no_message():
    def edits(**given: Any) -> Json:
        use = {"type": "tool_use", "id": "t", "name": "Edit", "input": {"edits": [given]}}
        return {"role": "assistant", "content": [use]}

    session = live()
    send(session, user("a"), edits(path="p", old=1, all=True))
    for repeated, known in ((edits(all=True, path="p", old=1), 2), (edits(path="p", old=2), 1)):
        answer = send(session, user("a"), repeated, history=True)
        assert answer["known"] == known


def test_a_system_prompt_before_the_history_may_change():
    session = live()
    for day in ("Monday", "Tuesday", "Tuesday"):
        answer = send(session, {"role": "system", "content": f"It is {day}."}, user("a"), says("b"))
    assert (answer["known"], answer["appended"]) == (3, 0)
    assert standing(session) == ["a", "b", "It is Tuesday."]
    revision = Revision.objects.get()
    assert (revision.trigger, revision.edits.get().strategy) == ("setup", "system")


# Tools and system prompts


def test_tools_and_system_are_stored_when_they_are_new():
    session, tools = live(), [{"name": "f", "input_schema": {}}]
    first = send(session, user("a"), tools=tools, system="Be good.")
    assert first["appended"] == 3
    assert send(session, says("b"), tools=tools, system="Be good.")["appended"] == 1
    changed = send(session, user("c"), tools=[{"name": "g"}], system=[
        {"type": "text", "text": "Be good."}])  # fmt: skip
    assert changed["appended"] == 2
    assert standing(session) == ["Be good.", "a", "b", "1 tool definitions: g", "c"]
    revision = Revision.objects.get()
    assert (revision.trigger, revision.edits.get().strategy) == ("setup", "tools")
    assert revision.step == 2
    send(session, tools=[], system="")
    assert standing(session) == ["a", "b", "c"]
    assert live().used_tokens == sum(Block.objects.filter(kind__in=["user", "assistant"]).values_list("tokens", flat=True))  # fmt: skip  # noqa: E501


def test_a_session_that_was_imported_goes_on_live():
    log = reading(3)
    session = append(local_team(), log, count, source="test").session
    answer = send(session, user("and now?"), says("done"))
    assert (answer["first_seq"], answer["steps"]) == (8, 4)
    session.refresh_from_db()
    assert session.used_tokens == sum(Block.objects.values_list("tokens", flat=True))


def test_what_the_policy_hides_is_not_counted_as_used():
    session = live()
    send(session, user("a" * 100), says("b" * 100))
    taken = Block.objects.count()
    Run.objects.create(
        session=session, origin=Run.Origin.MANAGED, taken=taken, fold={"counted": 5}, head=0
    )
    new = send(session, user("c"))
    assert new["budget"]["used"] == 5 + new["tokens"]
    session.refresh_from_db()
    assert standing_of(session).used == 5 + new["tokens"]


# Cost, and company


def test_an_append_asks_no_more_of_a_long_session():
    short, long = live("short"), live("long")
    for session, pairs in ((short, 1), (long, 300)):
        before = [m for n in range(pairs) for m in (reads(f"t{n}", "a"), result(f"t{n}", str(n)))]
        send(session, user(session.external_id), *before)
    asked = []
    for session in (short, long):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            send(session, result("t0", "late"), reads("new", "b"), says("x", id="1"))
        asked.append(len(queries))
    assert asked[0] == asked[1]


def test_known_messages_are_not_counted_again(monkeypatch: pytest.MonkeyPatch):
    session, said = live(), [user(f"m{n}") for n in range(20)]
    send(session, *said)
    counted: list[str] = []
    real = conversation.PreparedMessage.prepare
    monkeypatch.setattr(
        conversation.PreparedMessage,
        "prepare",
        lambda self: counted.append(self.digest) or real(self),
    )
    assert send(session, *said, user("new"))["known"] == 20
    assert len(set(counted)) == 1


@pytest.mark.django_db(transaction=True)
def test_two_senders_at_once_leave_no_gap():
    session = live()

    def sender(name: str) -> None:
        for number in range(8):
            send(session, user(f"{name}{number}"), says(f"{name}{number}"), history=False)
        connections.close_all()

    threads = [threading.Thread(target=sender, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = list(Message.objects.order_by("seq").values_list("seq", "born", "role"))
    assert [seq for seq, _, _ in rows] == list(range(1, 33))
    assert [born for _, born, role in rows if role == "assistant"] == list(range(2, 18))
    assert list(Block.objects.order_by("position").values_list("position", flat=True)) == list(
        range(32)
    )


@pytest.mark.fault("B8")
def test_the_rest_of_a_history_is_refused_after_others_wrote():
    session = live()
    last = send(session, user("a"), says("b"))["last_seq"]
    send(session, user("c"), history=False, after=last)
    for wrong in (last, 99, True):
        with pytest.raises(Unacceptable, match="/after"):
            send(session, user("d"), history=False, after=wrong)
    assert standing(session) == ["a", "b", "c"]
