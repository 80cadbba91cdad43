"""When compaction starts: window, new topic, task done, request; and when it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.cache.economy import Rates
from compaction.context.blocks import context_of
from compaction.context.edits import CannotCompact, Revision
from compaction.context.invariants import violations
from compaction.context.session import Session
from compaction.fold.fold import BREAKER, Arrival, State, advance, start
from compaction.fold.on_request import compact_now
from compaction.policies.policy import Policy, Step
from compaction.proposals.plan import Means, Span
from compaction.simulation.simulate import simulate
from compaction.strategies.compact_settings import Compact
from compaction.strategies.window import Window
from compaction.summaries.extract import extractive
from tests.build import Talk, rough
from tests.compaction.talks import talks

LONG = "some line of output with nothing in it\n" * 100
TASK = "The login form in src/auth/login.tsx rejects valid passwords, please find out why."
BRIEF = (
    "Write a weekly report generator: read invoices from the warehouse export, group amounts by "
    "supplier and currency, convert everything into euros, render charts as SVG and mail the "
    "finished document to accounting every Monday morning."
)
HOUR = 3_600_000


def compact_policy(**given: object) -> Policy:
    wanted = {"on_new_topic": True, "on_task_done": True} | given
    return Policy("t", steps=(Step("compact", Compact(**wanted)),))  # type: ignore[arg-type]


def topics(steps: int = 20, said: str = BRIEF, after: int = 2) -> Talk:
    """A task of so many steps of 1,000 tokens, then what a person says next, and its steps."""
    talk = Talk()
    talk.user(TASK)
    for number in range(steps):
        talk.respond()
        talk.result(talk.call("Bash", {"command": f"make part{number}"}), LONG)
    talk.respond()
    talk.say("The comparison in src/auth/login.tsx trimmed the password first.")
    talk.user(said)
    for number in range(after):
        talk.respond()
        talk.say(f"I look at export {number}.")
    return talk


def _at(session: Session, gaps: dict[int, int]) -> Session:
    """The session with a call every ten seconds, but for gaps (ms) before some steps."""
    at, calls = 1_000_000, []
    for call in session.calls:
        at += gaps.get(call.step, 10_000)
        calls.append(replace(call, at=at))
    return replace(session, calls=tuple(calls))


def _revisions(
    talk: Talk, policy: Policy, gaps: dict[int, int] | None = None
) -> tuple[Revision, ...]:
    run = simulate(_at(talk.session(window=200_000), gaps or {}), policy, rough)
    assert run.refusals == ()
    return run.revisions


@pytest.mark.parametrize(
    ("steps", "idle", "acts"),
    [
        (40, 10_000, True),  # warm, 40,000 tokens
        (20, 10_000, False),  # warm, 20,000
        (20, HOUR, True),  # cold, 20,000
        (2, HOUR, False),  # cold, 2,000
        (6, HOUR, True),
    ],
)
def test_a_new_topic_compacts_where_history_is_long_enough(
    steps: int, idle: int, acts: bool
) -> None:
    found = _revisions(topics(steps), compact_policy(), {steps + 2: idle})
    assert [(one.trigger, one.step) for one in found] == [("new_topic", steps + 2)] * acts
    for one in found:
        assert "a new topic begins" in one.reason
        assert one.tokens_after < one.tokens_before


@pytest.mark.parametrize("policy", [compact_policy(on_new_topic=False), Policy("none")])
def test_a_new_topic_changes_nothing_unless_requested(policy: Policy) -> None:
    assert _revisions(topics(40), policy) == ()


def test_what_goes_on_is_no_new_topic() -> None:
    assert _revisions(topics(40, said="now the same for signup, please"), compact_policy()) == ()


def test_the_cache_lives_as_long_as_the_session_asked_for() -> None:
    session = _at(topics(20).session(window=200_000), {22: 20 * 60_000})
    calls = session.calls
    means = [Means(rough, extractive, rates=Rates(ttl=one)) for one in (300_000, HOUR)]
    found = []
    for one in means:
        state, last, made = start(compact_policy(), 200_000, one), None, []
        for call in calls:
            new = tuple(b for b in session.blocks if b.born == call.step)
            _, revision = advance(state, Arrival(call.step, new, call.at, last=last))
            last = call.at
            made += [revision.trigger] if revision else []
        found.append(made)
    assert found == [["new_topic"], []]


def test_cache_prices_count() -> None:
    """Where little leaves early in a long context, to write the rest again costs more."""
    talk = Talk()
    talk.user(TASK)
    talk.respond()
    talk.result(talk.call("Bash", {"command": "make"}), LONG * 8)
    for number in range(40):
        talk.user(f"and part {number}, " + "in words that stay as they are " * 30)
        talk.respond()
        talk.say("ok")
    talk.user(BRIEF)
    talk.respond()
    talk.say("I begin.")
    policy = compact_policy(user_tokens=1_000_000, progress=0.0, summary_tokens=1_000, least_warm=0)
    session = _at(talk.session(window=200_000), {})
    for rates, acts in ((Rates(read=1, write=125), False), (Rates(read=100, write=125), True)):
        state, last, skipped = start(policy, 200_000, Means(rough, extractive, rates=rates)), 0, []
        made = []
        for call in session.calls:
            new = tuple(b for b in session.blocks if b.born == call.step)
            _, revision = advance(state, Arrival(call.step, new, call.at, last=last or None))
            last = call.at or 0
            skipped += state.skipped
            made += [revision.trigger] if revision else []
        assert made == ["new_topic"] * acts
        assert acts or any("costs more than it saves" in one for one in skipped)


def test_a_todo_list_worked_off_takes_the_form_of_a_task_that_is_done() -> None:
    talk = Talk()
    talk.user(TASK)
    for number in range(40):
        talk.respond()
        talk.result(talk.call("Bash", {"command": f"make part{number}"}), LONG)
    talk.respond()
    todos = [{"content": "find out why", "status": "completed"}]
    talk.result(talk.call("TodoWrite", {"todos": todos}), "ok")
    talk.respond()
    talk.say("Done.")
    talk.user("commit it, please")
    talk.respond()
    talk.say("Committed.")
    spans: list[Span] = []

    def summarize(span: Span) -> str:
        spans.append(span)
        return extractive(span)

    run = simulate(talk.session(window=200_000), compact_policy(), rough, summarize)
    assert [one.trigger for one in run.revisions] == ["task_done"]
    assert [one.form for one in spans] == ["done"]


def step_to(state: State, talk: Talk, step: int) -> Revision | None:
    new = tuple(block for block in talk.blocks if block.born == step)
    return advance(state, Arrival(step, new))[1]


def test_what_must_stay_is_named_where_the_trigger_cannot_be_left() -> None:
    talk = Talk()
    talk.system("rules " * 2_000)
    talk.user("pinned words " * 300, pinned=True)
    for number in range(10):
        talk.respond()
        talk.result(talk.call("Bash", {"command": f"make {number}"}), LONG)
    state = start(compact_policy(), 5_000, Means(rough, extractive))
    body = []
    for step in range(1, talk.step + 1):
        step_to(state, talk, step)
        body += state.skipped
    assert body
    assert "what must stay takes" in body[0]
    assert "system 3001" in body[0]


def test_after_a_try_the_prompt_must_grow_before_the_next() -> None:
    talk = Talk()
    talk.user("pinned words " * 3_000, pinned=True)
    for number in range(60):
        talk.respond()
        talk.say(f"word {number} " * 20)
    state = start(compact_policy(rearm=0.1), 12_000, Means(rough, extractive))
    tried = []
    for step in range(1, talk.step + 1):
        step_to(state, talk, step)
        tried += [state.used] * bool(state.skipped)
    assert tried
    assert all(later - earlier >= 1_200 for earlier, later in zip(tried, tried[1:], strict=False))


def test_three_refusals_break_it_and_a_failing_summarizer_does_not_stop_compaction() -> None:
    """A summary that breaks its form is replaced by the extractive one, so nothing is refused."""
    talk = topics(60)
    run = simulate(
        talk.session(window=60_000), compact_policy(), rough, lambda _: "no summary at all"
    )
    assert [one.trigger for one in run.revisions][:1] == ["window"]
    assert run.refusals == ()
    state = start(compact_policy(), 60_000, Means(rough, extractive))
    state.failures = [BREAKER]
    assert [step_to(state, talk, step) for step in range(1, talk.step + 1)] == [None] * talk.step


def test_a_request_may_say_that_the_task_is_done() -> None:
    talk = topics(20)
    state = start(compact_policy(), 200_000, Means(rough, extractive))
    for step in range(1, talk.step + 1):
        step_to(state, talk, step)
    revision = compact_now(state, done=True)
    assert revision is not None
    assert revision.trigger == "task_done"
    with pytest.raises(CannotCompact):
        compact_now(state, done=True)


def test_too_many_messages_cut_the_window_and_a_missed_target_is_named() -> None:
    talk = Talk()
    for number in range(30):
        talk.user(f"question {number} " * 10)
        talk.respond()
        talk.say(f"answer {number} " * 10)
    window = Window(budget=1_000_000, messages=30, primers=2, recents=10, rearm=0)
    run = simulate(talk.session(), Policy("w", steps=(Step("window", window),)), rough)
    assert run.revisions
    assert "31 messages, at most 30" in run.revisions[0].reason
    tight = Window(budget=1_400, target=0.1, primers=0, recents=20)
    pinned = replace(talk.blocks[0], pinned=True, tokens=600)
    blocks = (pinned, *talk.blocks[1:])
    run = simulate(
        replace(talk.session(), blocks=blocks), Policy("w", steps=(Step("window", tight),)), rough
    )
    assert run.revisions
    assert "target of 140 missed: pinned 600" in run.revisions[0].reason


@settings(max_examples=60)
@given(talks(), st.booleans(), st.integers(0, 4_000), st.integers(0, 4_000))
def test_whatever_the_cause_the_context_holds_together(
    session: Session, failures: bool, cold: int, warm: int
) -> None:
    policy = compact_policy(
        keep_failures=failures, least_cold=cold, least_warm=warm, summary_tokens=200
    )
    run = simulate(session, policy, rough)
    assert run.refusals == ()
    causes = {one.trigger for one in run.revisions}
    assert causes <= {"window", "new_topic", "task_done"}
    known = {entry.block.id for entry in run.entries}
    standing = {e.block.position: e.block for e in run.entries if e.to_step is None}
    loose = set(violations(context_of(session.blocks), known))
    assert set(violations(context_of(standing.values()), known)) <= loose
    for one in run.revisions:
        assert one.tokens_after < one.tokens_before
