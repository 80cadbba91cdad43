"""Compaction and sliding window: when they run, what they keep, what they write."""

from __future__ import annotations

import pytest

from compaction.context.blocks import Context
from compaction.context.edits import context_at
from compaction.context.invariants import violations
from compaction.context.session import Session
from compaction.fold.fold import Arrival, advance, start
from compaction.policies.policy import Policy, Step
from compaction.policies.presets import PRESETS
from compaction.proposals.plan import Means, Span
from compaction.simulation.simulate import Run, simulate
from compaction.strategies.compact_settings import Compact
from compaction.strategies.window import Window
from compaction.summaries.extract import extractive
from compaction.summaries.summary import NINE, problems
from tests.build import Talk, coding, rough

LONG = "some line of output\n" * 200


def _policy(**parameters: object) -> Policy:
    return Policy("c", steps=(Step("compact", Compact(**parameters)),))  # type: ignore[arg-type]


def _last(run: Run) -> Context:
    return context_at(run.entries, run.steps[-1].step)


@pytest.mark.parametrize(("messages", "most"), [(100, 12_000), (500, 15_000), (1_000, 15_000)])
def test_published_reductions(messages: int, most: int) -> None:
    """100 messages of 25K come to 12K, 500 of 125K and 1,000 of 250K to 15K: Shannon,
    docs/sources.md."""
    session = coding(messages, tokens=470)
    given = sum(block.tokens for block in session.blocks)
    assert 0.95 < given / (messages * 250) < 1.15
    run = simulate(session, PRESETS["sliding-window"], rough)
    ends = [revision.tokens_after for revision in run.revisions]
    assert ends
    assert max(ends) <= most
    assert run.refusals == ()
    known = {entry.block.id for entry in run.entries}
    assert violations(_last(run), known) == []


def test_a_small_session_is_left_alone() -> None:
    session = coding(50, tokens=380)
    assert 9_000 < sum(block.tokens for block in session.blocks) < 11_000
    for policy in (PRESETS["sliding-window"], _policy(), PRESETS["passthrough"]):
        assert simulate(session, policy, rough).revisions == ()


def _chatter(steps: int) -> Talk:
    talk = Talk()
    talk.user("build the thing " * 20)
    for number in range(steps):
        talk.respond()
        talk.say(f"Looking at part {number}.")
        talk.result(talk.call("Bash", {"command": f"make part{number}"}), LONG)
        if number % 7 == 6:
            talk.user(f"now part {number + 1}, please")
    return talk


def test_a_failure_that_stays_keeps_the_other_calls_of_its_response() -> None:
    talk = Talk()
    talk.user("build the thing")
    talk.respond()
    failing, fine = talk.call("Bash", {"command": "make a"}), talk.call("Read", {"path": "b"})
    kept = [failing, fine, talk.result(failing, "broken", error=True), talk.result(fine, LONG)]
    for number in range(20):
        talk.respond()
        talk.result(talk.call("Bash", {"command": f"test {number}"}), LONG)
    run = simulate(talk.session(window=20_000), _policy(keep_failures=True), rough)
    assert run.refusals == ()
    assert run.revisions
    assert {block.id for block in kept} <= {block.id for block in _last(run).values()}


def test_the_hot_cache_users_pins_and_system_stay() -> None:
    talk = Talk()
    talk.system("system prompt")
    talk.user("build the thing")
    talk.respond()
    pinned = talk.call("Read", {"path": "spec"}, pinned=True)
    half = talk.result(pinned, LONG)
    for number in range(20):
        talk.respond()
        talk.result(talk.call("Bash", {"command": f"make {number}"}), LONG)
    talk.user("stop and think")
    run = simulate(talk.session(window=20_000), _policy(), rough)
    (revision,) = run.revisions
    (edit,) = revision.edits
    assert revision.trigger == "window"
    left = context_at(run.entries, revision.step)
    assert [left[p] for p in (0, 1)] == talk.blocks[:2]
    assert left[pinned.position] is pinned
    assert left[half.position] is half
    hot = [b for b in talk.blocks if b.born == revision.step]
    assert all(left[b.position] is b for b in hot)
    assert len(left) == 2 + 2 + len(hot) + 1
    assert edit.replacement is not None
    assert problems(edit.replacement.text) == []


def test_user_messages_beyond_the_limit_go_oldest_first() -> None:
    talk = _chatter(30)
    run = simulate(talk.session(window=30_000), _policy(user_tokens=20), rough)
    revision = run.revisions[0]
    kinds = [b for b in context_at(run.entries, revision.step).values() if b.kind == "user"]
    assert sum(b.tokens for b in kinds) <= 20
    text = next(e.replacement.text for e in revision.edits if e.replacement is not None)
    for block in talk.blocks:
        if block.kind == "user" and block.born < revision.step:
            assert block.text.split(",")[0][:60] in text


def test_it_runs_again_only_after_new_growth_and_builds_on_the_earlier_summary() -> None:
    run = simulate(_chatter(120).session(window=30_000), _policy(), rough)
    assert len(run.revisions) >= 4
    for earlier, later in zip(run.revisions, run.revisions[1:], strict=False):
        assert later.tokens_before >= earlier.tokens_after + 3_000
        summary = earlier.edits[0].replacement
        assert summary is not None
        assert summary.id in later.edits[0].targets
        assert later.tokens_after <= 0.9 * later.tokens_before
    ends = _last(run)
    assert sum(block.kind == "summary" for block in ends.values()) == 1


def test_growth_of_the_summary_over_ten_cycles() -> None:
    """At most 1.2 times (ours: docs/sources.md)."""
    run = simulate(coding(4_000, 400), _policy(trigger=0.2, summary_tokens=2_000), rough)
    sizes = [r.edits[0].replacement.tokens for r in run.revisions if r.edits[0].replacement]
    assert len(sizes) >= 10
    assert sizes[9] <= 1.2 * sizes[0]
    assert max(sizes) <= 2_000


def test_unreachable_targets_are_not_tried() -> None:
    talk = Talk()
    talk.user("x " * 10_000, pinned=True)
    talk.respond()
    talk.say("well")
    talk.result(talk.call("LS", {}), "a")
    talk.respond()
    talk.say("well")
    state = start(_policy(), 5_000, Means(rough, extractive))
    state, revision = advance(state, Arrival(3, tuple(talk.blocks)))
    assert revision is None
    assert "what must stay takes" in state.skipped[0]
    state, revision = advance(state, Arrival(4))
    assert (revision, state.skipped) == (None, [])


def test_a_summary_that_is_not_ready_is_wanted_and_changes_nothing() -> None:
    session = _chatter(40).session(window=30_000)
    spans: list[Span] = []

    def later(span: Span) -> str | None:
        spans.append(span)
        return extractive(span) if len(spans) > 3 else None

    state = start(_policy(), session.window, Means(rough, later))
    wanted = 0
    for call in session.calls:
        fresh = tuple(b for b in session.blocks if b.born == call.step)
        state, revision = advance(state, Arrival(call.step, fresh))
        wanted += len(state.wanted)
        assert (revision is None) or wanted == 3
    assert wanted == 3
    assert state.revisions >= 1


@pytest.mark.parametrize("bad", ["", "Sorry, I cannot.", "<summary></summary>", "x" * 200_000])
def test_a_bad_summary_is_never_used(bad: str) -> None:
    session = _chatter(40).session(window=30_000)
    for policy in (_policy(), Policy("w", steps=(Step("window", Window(trigger=0.5)),))):
        run = simulate(session, policy, rough, lambda _: bad)
        assert run.revisions
        assert run.revisions == simulate(session, policy, rough).revisions


def test_a_good_summary_is_used_as_it_is() -> None:
    good = "<summary>\n" + "".join(f"<{n}>\nNone\n</{n}>\n" for n in NINE[1:])
    good = good.replace("<summary>\n", f"<summary>\n<{NINE[0]}>\nTo build.\n</{NINE[0]}>\n")
    good += "</summary>"
    run = simulate(_chatter(40).session(window=30_000), _policy(), rough, lambda _: good)
    assert {r.edits[0].replacement.text for r in run.revisions if r.edits[0].replacement} == {good}


def _window_run(session: Session, **parameters: object) -> Run:
    step = Step("window", Window(**parameters))  # type: ignore[arg-type]
    return simulate(session, Policy("w", steps=(step,)), rough)


def test_primers_and_recents_by_count() -> None:
    talk = Talk()
    for number in range(100):
        talk.user(f"question {number} " + "x" * 388)
        talk.respond()
        talk.say("y" * 399)
    run = _window_run(talk.session(), budget=10_000, summary_tokens=200)
    revision = run.revisions[0]
    left = context_at(run.entries, revision.step)
    messages = [b.message for b in left.values()]
    born = max(b.message for b in talk.blocks if b.born <= revision.step)
    # The summary stands at the fourth message, whose place it took.
    assert messages == [1, 2, 3, 4, *range(born - 19, born + 1)]


def test_fewer_recents_where_they_do_not_fit_and_huge_primers_shrink() -> None:
    talk = Talk()
    talk.user("go")
    for _ in range(30):
        talk.respond()
        talk.result(talk.call("Read", {"path": "a"}), "z" * 8_000)
    run = _window_run(talk.session(), budget=20_000)
    assert run.revisions
    for revision in run.revisions:
        assert revision.tokens_after <= 0.375 * 20_000
    left = context_at(run.entries, run.revisions[0].step)
    assert left[0] is talk.blocks[0]


def test_without_a_middle_nothing_happens() -> None:
    talk = Talk()
    talk.user("a" * 60_000)
    talk.respond()
    talk.say("b" * 60_000)
    assert _window_run(talk.session(), budget=20_000).revisions == ()


def test_the_window_is_cut_again_only_after_new_growth() -> None:
    """Pins keep it above the trigger: one cut, then none until a tenth of the budget is new."""
    talk = Talk()
    talk.user("pin " * 4_600, pinned=True)
    for _ in range(40):
        talk.respond()
        talk.result(talk.call("Read", {"path": "a"}), "z" * 1_600)
    run = _window_run(talk.session(), budget=10_000, trigger=0.6, target=0.3, progress=0.0)
    assert len(run.revisions) >= 3
    for earlier, later in zip(run.revisions, run.revisions[1:], strict=False):
        assert later.tokens_before >= earlier.tokens_after + 1_000


def test_what_a_summary_tells_of_takes_no_more_to_say_the_longer_a_session_is() -> None:
    session = coding(1_500, 470)
    state = start(PRESETS["sliding-window"], session.window, Means(rough, extractive))
    for call in session.calls:
        advance(state, Arrival(call.step, tuple(b for b in session.blocks if b.born == call.step)))
    answer = [state.covers[one.replacement.id] for made in state.made for one in made.edits
            if one.replacement is not None]  # fmt: skip
    assert len(answer) > 10
    assert max(map(len, answer)) <= 2
    # And still all of it: the summary covers what left the context.
    standing = {place for block in state.standing.values() for place in state.positions_of(block)}
    assert standing == set(state.originals)


def test_pictures_of_people_stay_beside_the_summary() -> None:
    talk = _chatter(60)
    for number in (1, 2):
        talk.message += 1
        talk.add(f"[image image/png {number}]", role="user", type="image", kind="other")
    for number in range(60):
        talk.respond()
        talk.result(talk.call("Bash", {"command": f"run {number}"}), LONG)
    run = simulate(talk.session(60_000), _policy(), rough)
    assert run.revisions
    assert [b.text for b in _last(run).values() if b.type == "image"] == [
        "[image image/png 1]", "[image image/png 2]",
    ]  # fmt: skip
