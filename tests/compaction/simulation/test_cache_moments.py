"""What a log shows of each call: places, changes, and request settings."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.cache.forecast import Moment, PromptChange
from compaction.cache.places import Places
from compaction.context.edits import Edit, Revision
from compaction.context.session import Call
from compaction.simulation.moments import (
    ContextChange,
    ContextState,
    Placed,
    is_program,
    is_search,
)

HAIKU = "claude-haiku-4-5"


def revision(trigger: str, number: int = 1, strategy: str = "compaction") -> Revision:
    return Revision(number, 1, trigger, (Edit(strategy, (), None, ""),), 0, 0)  # type: ignore[arg-type]


def begun(*blocks: Placed, **call: str) -> ContextState:
    standing = ContextState()
    standing.next(Call(1, **call), ContextChange(list(blocks)))  # type: ignore[arg-type]
    return standing


@given(st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=60))
def test_places_are_a_set_of_positions(acts: list[tuple[int, bool]]) -> None:
    places, wanted = Places(), set[int]()
    for position, comes in acts:
        (places.add if comes else places.remove)(position)
        (wanted.add if comes else wanted.discard)(position)
        assert len(places) == len(wanted)
        assert [places.before(at) for at in range(14)] == [
            sum(one < at for one in wanted) for at in range(14)
        ]
        ends = [end for one in places.ranges for end in one]
        assert ends == sorted(set(ends)), "ranges that touch are one"


def test_a_revision_changes_the_prompt_from_the_first_block_it_touches() -> None:
    standing = begun(*map(Placed, range(6)))
    moment = standing.next(Call(2), ContextChange([Placed(6)], [3, 4], [revision("auto", 5)]))
    assert (moment.changes, moment.blocks) == ((PromptChange("edit", 3, 5),), 5)
    back = standing.next(Call(3), ContextChange([], [6], [revision("rewind", 6)]))
    assert back.changes == (PromptChange("rewind", 4, 6),)
    # What leaves by itself, without a record of it, is not a change that the log tells of.
    assert standing.next(Call(4), ContextChange([], [5])).changes == ()


def test_other_tools_come_before_another_system_prompt() -> None:
    setups = [revision("setup", 2, "system"), revision("setup", 3, "tools")]
    moment = begun(Placed(0)).next(Call(2), ContextChange([], [0], setups))
    assert [(one.cause, one.revision) for one in moment.changes] == [("tools", 3), ("system", 2)]
    assert {one.block for one in moment.changes} == {-1}


def test_settings_and_clients_are_compared_where_the_log_names_both() -> None:
    standing = begun(settings="low", client="2.1 0")
    assert standing.next(Call(2), ContextChange()).changes == ()
    assert standing.next(Call(3, settings="low", client="2.1 0"), ContextChange()).changes == ()
    answer = standing.next(Call(4, settings="high", client="2.1 1"), ContextChange()).changes
    assert answer == (PromptChange("restart", 0), PromptChange("settings", 0))
    assert begun().next(Call(2, settings="high", client="2"), ContextChange()).changes == ()


@pytest.mark.parametrize(
    ("model", "changes"),
    [("gpt-5.5", (PromptChange("search", 2),)), ("claude-opus-4-6", ())],
)
def test_a_search_within_a_call_changes_what_it_had_cached(
    model: str, changes: tuple[PromptChange, ...]
) -> None:
    standing = begun(*map(Placed, range(3)), model=model)
    found = ContextChange([Placed(3, searched=True), Placed(4)])
    assert standing.next(Call(2, model), found).changes == changes
    assert standing.next(Call(3, model), ContextChange([Placed(5)])).changes == ()


@pytest.mark.parametrize(
    ("type", "kind", "search"),
    [
        ("other", "assistant", True),
        ("other", "user", False),
        ("tool_use", "assistant", False),
    ],
)
def test_what_the_provider_ran_is_of_no_type_that_a_client_sends(
    type: str, kind: str, search: bool
) -> None:
    assert is_search(type, kind) is search


def test_thinking_is_taken_out_when_a_person_writes() -> None:
    standing = begun(Placed(0), model=HAIKU)
    standing.next(Call(2, HAIKU), ContextChange([Placed(1, thinking=True), Placed(2)]))
    moment = standing.next(Call(3, HAIKU), ContextChange([Placed(3)], human=True))
    assert (moment.changes, moment.human) == ((PromptChange("thinking", 1),), True)
    assert standing.next(Call(4, HAIKU), ContextChange([Placed(4)], human=True)).changes == ()


def test_the_first_and_the_last_image_change_how_messages_are_cached() -> None:
    standing = begun(Placed(0))
    assert standing.next(Call(2), ContextChange([Placed(1, image=True)])).changes == (
        PromptChange("images", 0),
    )
    assert standing.next(Call(3), ContextChange([Placed(2, image=True)])).changes == ()
    gone = standing.next(Call(4), ContextChange([], [1, 2], [revision("auto")])).changes
    assert gone == (PromptChange("edit", 1, 1), PromptChange("images", 0))


@pytest.mark.parametrize(
    ("path", "program"),
    [("src/theme.ts", True), ("Makefile", True), ("README.md", False), ("docs/NOTES.TXT", False)],
)
def test_prose_is_no_part_of_a_program(path: str, program: bool) -> None:
    assert is_program(path) is program


def test_standing_can_be_kept_and_gone_on_from() -> None:
    standing = begun(Placed(0), Placed(1, image=True), Placed(2, thinking=True), settings="low")
    kept = msgspec.msgpack.decode(msgspec.msgpack.encode(standing), type=ContextState)
    assert kept == standing
    since = ContextChange([Placed(3, wrote=True)], human=True)
    answer = kept.next(Call(2, HAIKU, 5), since)
    assert answer == Moment(2, HAIKU, 5, 4, (PromptChange("thinking", 2),), human=True, wrote=True)
