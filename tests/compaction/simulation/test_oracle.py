"""The oracle: it keeps what is needed, and leaves the rest when that pays."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from compaction.context.edits import context_at
from compaction.context.session import Call, Session
from compaction.facts.facts import FactIndex
from compaction.facts.recall import recall
from compaction.losses.feasibility import EditIndex, feasibility
from compaction.prices.prices import Price
from compaction.simulation.oracle import STUB, oracle
from compaction.simulation.run import Terms, simulate_cache
from compaction.simulation.simulate import Run
from tests.build import Talk
from tests.compaction.talks import talks

PRICE = Price("test", 3_000, 300, 3_750, 6_000, 15_000, "test", "2026-01-01")
TERMS = Terms(PRICE, minimum=1)


def of(session: Session) -> Run:
    run = oracle(session, FactIndex(session.blocks), EditIndex(session), TERMS)
    assert run is not None
    return run


def explored(readings: int, later: int) -> Session:
    """Long readings and calls after them; the last step needs the first reading."""
    talk = Talk()
    talk.user("look around")
    for number in range(readings):
        talk.respond()
        use = talk.call("Read", {"number": number})
        talk.result(use, f"name_{number}_here " + "filler " * 2_000)
    for number in range(later):
        talk.respond()
        talk.result(talk.call("Bash", {"n": number}), "ok")
    talk.respond()
    talk.call("Bash", {"command": "grep name_0_here"})
    return talk.session()


def test_what_is_needed_stays_and_the_rest_leaves_once_seen() -> None:
    session = explored(3, 30)
    run = of(session)
    last = context_at(run.entries, len(session.calls))
    sizes = {block.id.split(":")[0]: block.tokens for block in last.values()}
    results = [block for block in session.blocks if len(block.text) > 1_000]
    assert sizes[results[0].id] == results[0].tokens, "needed at the end"
    assert [sizes[block.id] for block in results[1:]] == [STUB, STUB]
    for block in results:
        assert block.id in {one.id for one in context_at(run.entries, block.born).values()}


def first_is_free() -> Session:
    """A reading that is needed once, before one six times as long that is needed at the end."""
    talk = Talk()
    talk.user("look around")
    for size in (300, 2_000):
        talk.respond()
        talk.result(talk.call("Read", {"n": size}), f"name_{size}_here " + "filler " * size)
    for size in (300, 2_000):
        talk.respond()
        talk.result(talk.call("Bash", {"command": f"grep name_{size}_here"}), "ok")
    session = talk.session()
    return replace(session, calls=session.calls[:-1])


def test_a_saving_that_never_pays_is_left() -> None:
    assert not of(first_is_free()).revisions


def test_a_cold_cache_makes_it_free() -> None:
    session = first_is_free()
    day = 24 * 3_600_000
    late = tuple(replace(call, at=call.step * day) for call in session.calls)
    assert of(replace(session, calls=late)).revisions


def test_it_has_no_cost_without_a_price_or_a_call() -> None:
    session = explored(1, 0)
    index, edits = FactIndex(session.blocks), EditIndex(session)
    assert oracle(session, index, edits, Terms()) is None
    assert oracle(replace(session, calls=()), index, edits, TERMS) is None


@given(talks())
def test_every_need_and_every_edit_stays_and_it_costs_no_more_than_nothing_done(
    session: Session,
) -> None:
    calls: tuple[Call, ...] = session.calls
    run = of(session)
    found = recall(session, run)
    assert found.needs == 0 or found.in_context == 1
    assert feasibility(EditIndex(session), run).share == 1
    assert [step.total for step in run.steps] == [
        sum(block.tokens for block in context_at(run.entries, call.step).values()) for call in calls
    ]
    cost = simulate_cache(run, calls, TERMS)
    assert cost.cost is not None and cost.recorded_cost is not None
    if not run.revisions:
        assert cost.cost == cost.recorded_cost
