"""Appending: gapless, once only, all or nothing, and nothing ever changed."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compaction.context import wire
from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append, link_parents
from sessions.importers import records
from sessions.models import Blob, Block, Entry, Message, Revision, Run, Session
from sessions.models.record.values import contents
from tests.sessions.made import count, reading, reads, result, says, session, user

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def stored(external_id: str = "s1") -> Session:
    return Session.objects.get(external_id=external_id)


def standing_at(run: Run, step: int) -> list[str]:
    """Previews of entries in context, directly from the intervals."""
    found = []
    for block in run.session.blocks.order_by("position"):
        entries = list(Entry.objects.filter(run=run, block=block))
        intervals = [(e.from_step, e.to_step) for e in entries] or [(block.born, None)]
        if any(a <= step and (b is None or step < b) for a, b in intervals):
            found.append(block.preview)
    return found


def test_it_numbers_messages_steps_and_positions():
    append(local_team(), reading(3), count, source="test")
    made = stored()
    assert list(made.messages.order_by("seq").values_list("seq", flat=True)) == list(range(1, 8))
    assert list(made.blocks.order_by("position").values_list("position", flat=True)) == list(
        range(7)
    )
    assert (made.step_count, made.turn_count, made.tool_call_count) == (3, 1, 3)
    # The task is in every context; what step 1 wrote and read is in context from step 2 on.
    assert list(made.blocks.order_by("position").values_list("born", flat=True)) == [
        1, 2, 2, 3, 3, 4, 4,
    ]  # fmt: skip


def test_it_knows_what_a_tool_result_shows():
    append(local_team(), reading(1), count, source="test")
    shown = Block.objects.get(type="tool_result")
    assert (shown.kind, shown.tool, shown.file_path) == ("file", "Read", "src/f1.py")


def test_lines_of_one_response_share_a_step():
    append(
        local_team(),
        session(
            user("go"),
            reads("c1", "t1", "a.py"),
            result("t1", "A"),
            reads("c1", "t2", "b.py"),
            result("t2", "B"),
            says("c2", "done"),
        ),
        count,
        source="test",
    )
    assert stored().step_count == 2
    assert list(stored().blocks.order_by("position").values_list("born", flat=True)) == [
        1, 2, 2, 2, 2, 3,
    ]  # fmt: skip


@pytest.mark.parametrize("keyed", [True, False])
def test_importing_again_adds_nothing(keyed: bool):
    team = local_team()
    append(team, reading(4, keyed=keyed), count, source="test")
    before = Message.objects.count(), Block.objects.count(), Blob.objects.count()
    again = append(team, reading(4, keyed=keyed), count, source="test")
    assert not again.changed
    assert again.known == 9
    assert (Message.objects.count(), Block.objects.count(), Blob.objects.count()) == before


@pytest.mark.parametrize("keyed", [True, False])
def test_a_log_that_grew_adds_its_tail(keyed: bool):
    team = local_team()
    append(team, reading(2, keyed=keyed), count, source="test")
    ids = list(Message.objects.order_by("seq").values_list("pk", flat=True))
    grown = append(team, reading(5, keyed=keyed), count, source="test")
    assert (grown.messages, grown.known) == (6, 5)
    assert list(Message.objects.order_by("seq").values_list("pk", flat=True))[:5] == ids
    assert stored().step_count == 5


def test_a_history_that_diverged_is_a_rewind():
    team = local_team()
    append(team, session(user("a"), says("c1", "b"), user("c")), count, source="test")
    append(
        team, session(user("a"), says("c1", "b"), user("other"), says("c2", "x")), count,
        source="test",
    )  # fmt: skip
    run = Run.objects.get(origin=Run.Origin.RECORDED)
    assert standing_at(run, 2) == ["a", "b", "other"]
    assert Revision.objects.get().trigger == "rewind"
    assert Message.objects.count() == 5, "the message that was left behind is kept"


def test_a_recorded_compaction_closes_what_stood_and_names_its_summary():
    summary = records.Message(
        "user", [{"type": "text", "text": "So far: …"}], key="s", kind="summary"
    )
    append(
        local_team(),
        session(
            user("a", key="1"),
            says("c1", "b", key="2"),
            records.Compaction("auto", keep=("1",), tokens_before=900, key="3"),
            summary,
            says("c2", "d", key="4"),
        ),
        count,
        source="test",
    )
    run = Run.objects.get()
    assert standing_at(run, 1) == ["a"]
    assert standing_at(run, 2) == ["a", "So far: …"]
    assert standing_at(run, 3) == ["a", "So far: …", "d"]
    revision = Revision.objects.get()
    assert (revision.trigger, revision.step, revision.tokens_before) == ("auto", 2, 900)
    assert revision.edits.get().summary.preview == "So far: …"
    assert stored().compaction_count == 1


def test_cleared_results_leave_a_replacement_that_says_so():
    made = reading(2)
    made.records.append(records.Clear(("t1",), key="clear"))
    append(local_team(), made, count, source="test")
    edit = Revision.objects.get(trigger="clear").edits.get()
    assert edit.replacement is not None
    assert edit.closed.get().block.tool_call == "t1"
    assert edit.opened.get().from_step == 3


def test_usage_that_arrives_later_attaches_to_its_call():
    from compaction.context.session import Usage

    team = local_team()
    append(team, session(user("a", "1"), says("c1", "b", "2")), count, source="test")
    later = session(
        user("a", "1"),
        says("c1", "b", "2"),
        records.Call("c1", "claude-x", usage=Usage(uncached=3, cache_read=40, output=5)),
    )
    append(team, later, count, source="test")
    call = stored().calls.get()
    assert (call.uncached, call.cache_read, call.output, call.step) == (3, 40, 5, 1)


def test_sub_agents_find_their_parent_in_either_order():
    team = local_team()
    child = session(user("look"), external_id="s1/agent-7")
    child.parent, child.parent_call = "s1", "t1"
    append(team, child, count, source="test")
    assert link_parents(team) == []
    append(team, reading(2), count, source="test")
    assert link_parents(team) == [stored()]
    linked = stored("s1/agent-7")
    assert (linked.parent, linked.parent_step) == (stored(), 1)


@pytest.mark.fault("I1")
@pytest.mark.parametrize("model", [Message, Block, Blob])
def test_the_database_refuses_to_change_an_original(model: type):
    append(local_team(), reading(1), count, source="test")
    field = "sha" if model is not Message else "role"
    with pytest.raises(DatabaseError, match="insert-only"), transaction.atomic():
        model.objects.update(**{field: "x"})


def test_a_batch_is_all_or_nothing(monkeypatch: pytest.MonkeyPatch):
    def fails(*args: object, **kwargs: object) -> None:
        raise RuntimeError("disk")

    monkeypatch.setattr("sessions.actions.record.writing._message_ids", fails)
    with pytest.raises(RuntimeError):
        append(local_team(), reading(2), count, source="test")
    assert not Session.objects.exists()
    assert not Message.objects.exists()


hostile = st.text(st.characters(), max_size=30)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | hostile,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(hostile, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.fault("F1", "F2")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=values, text=hostile)
def test_any_content_comes_back_byte_for_byte(content: object, text: str):
    blocks = [
        {"type": "tool_use", "id": "t", "name": "Odd", "input": content},
        {"type": "text", "text": text + "\x00\ud800"},
        {"type": "something new", "value": content},
    ]
    with transaction.atomic():
        made = append(
            local_team(),
            session(records.Message("assistant", list(blocks), call="c1")),
            count,
            source="test",
        ).session
        rows = list(made.blocks.order_by("position"))
        data = contents(made, [row.sha for row in rows])
        assert [data[row.sha] for row in rows] == [wire.encode(block) for block in blocks]
        assert [wire.decode(data[row.sha]) for row in rows] == blocks
        transaction.set_rollback(True)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, 13), max_size=4), keyed=st.booleans())
def test_appending_in_pieces_equals_appending_in_one_go(cuts: list[int], keyed: bool):
    whole = reading(6, keyed=keyed)
    with transaction.atomic():
        team = local_team()
        for cut in [*sorted(cuts), len(whole.records)]:
            piece = session(*whole.records[:cut])
            append(team, piece, count, source="test")
        rows = list(stored().blocks.order_by("position").values_list("position", "born", "sha"))
        transaction.set_rollback(True)
    with transaction.atomic():
        append(local_team(), whole, count, source="test")
        assert rows == list(
            stored().blocks.order_by("position").values_list("position", "born", "sha")
        )
        transaction.set_rollback(True)


def test_a_compaction_also_takes_out_what_stood_in_place_of_cleared_results():
    made = reading(2)
    made.records += [
        records.Clear(("t1",), key="clear"),
        *reading(3).records[5:],
        records.Compaction("auto", key="compaction"),
        user("go on", key="go"),
    ]
    team = local_team()
    for cut in (6, len(made.records)):
        append(team, session(*made.records[:cut]), count, source="test")
    run = Run.objects.get()
    placeholder = Entry.objects.get(run=run, block=None)
    assert (placeholder.from_step, placeholder.to_step) == (3, 4)
    assert standing_at(run, 4) == ["go on"]
