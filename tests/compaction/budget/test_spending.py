"""Spending: strict limits, warnings given once, and no way past a hard limit by reserving."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from compaction.budget.budget import LADDER, delay_of
from compaction.budget.spending import Account, AccountState, Amount, Mode, Verdict, judge, project


def finding(account: Account, asked: Amount, *, refused: bool = False) -> AccountState:
    return AccountState(account, "task ferry", account.exceeded(asked), refused)


def says(mode: Mode, used: int, asked: int, *, refused: bool = False) -> Verdict:
    account = Account(mode, tokens=100, used=Amount(used))
    return judge([finding(account, Amount(asked), refused=refused)], Amount(asked))


def test_exactly_the_limit_is_within_it():
    assert says("hard", 60, 40).can_proceed
    assert not says("hard", 60, 41).can_proceed


def test_what_is_reserved_counts_as_what_is_used():
    account = Account("hard", tokens=100, used=Amount(30), reserved=Amount(30))
    assert account.exceeded(Amount(40)) == ()
    assert account.exceeded(Amount(41)) == ("tokens",)


@pytest.mark.parametrize(
    ("mode", "can", "asks"),
    [("hard", False, False), ("soft", True, False), ("approval", False, True)],
)
def test_what_each_mode_says_of_too_much(mode: Mode, can: bool, asks: bool):
    verdict = says(mode, 90, 20)
    assert (verdict.can_proceed, verdict.require_approval) == (can, asks)
    assert bool(verdict.reason) is not can


def test_a_refused_call_is_not_asked_for_again():
    verdict = says("approval", 90, 20, refused=True)
    assert (verdict.can_proceed, verdict.require_approval) == (False, False)
    assert "a person refused" in verdict.reason


def test_a_hard_limit_is_stated_before_a_person_is_asked():
    asked = Amount(20)
    both = [Account(mode, tokens=100, used=Amount(90)) for mode in ("approval", "hard")]
    verdict = judge([finding(one, asked) for one in both], asked)
    assert not verdict.require_approval
    assert verdict.reason == (
        "The task ferry has 100 tokens; this call would bring it to 110, and is hard."
    )


def test_each_unit_has_a_limit_of_its_own():
    account = Account("hard", tokens=100, microusd=50, used=Amount(10, 45))
    assert account.exceeded(Amount(5, 6)) == ("microusd",)
    assert account.exceeded(Amount(91, 0)) == ("tokens",)
    assert account.share() == 0.9
    assert Account("hard", microusd=50).exceeded(Amount(10**9, 50)) == ()


def test_a_limit_of_zero_lets_nothing_through_and_is_full_from_the_start():
    account = Account("hard", tokens=0)
    assert account.share() == 1.0
    assert account.state() == "over"
    assert account.exceeded(Amount(1)) == ("tokens",)
    assert account.exceeded(Amount(0)) == ()


def test_a_grant_is_what_the_call_needs_and_more():
    account = Account("approval", tokens=100, used=Amount(90))
    asked = Amount(20)
    assert account.grant(asked).exceeded(asked) == ()
    assert account.grant(asked).exceeded(Amount(21)) == ("tokens",)
    assert account.grant(asked, Amount(5)).exceeded(Amount(25)) == ()
    assert Account("approval", tokens=100).grant(asked).extra == Amount()


def test_a_threshold_is_announced_once_until_the_share_falls_below_it():
    account = Account("soft", tokens=100, used=Amount(85))
    account, new = account.latched()
    assert new == (800,)
    account, new = account.reserve(Amount(10)).latched()
    assert new == ()
    account, new = account.reserve(Amount(30)).latched()
    assert new == (1000,)
    account, new = account.settle(Amount(40), Amount(0)).latched()
    assert (new, account.warned) == ((), {800})
    account, new = account.settle(Amount(0), Amount(-20)).latched()
    assert account.warned == frozenset()
    assert account.reserve(Amount(20)).latched()[1] == (800,)


def test_the_ladder_is_that_of_the_context():
    assert [delay_of(share) for share, _ in LADDER] == [delay for _, delay in LADDER]
    assert delay_of(0.7999) == 0
    asked = Amount(10)
    account = Account("soft", tokens=100, used=Amount(75))
    assert judge([finding(account, asked)], asked).delay_ms == 300


CALLS = st.integers(0, 60)


class Agents(RuleBasedStateMachine):
    """Agents that check before each call and settle after it, in any order; no call takes more than
    it reserved."""

    def __init__(self) -> None:
        super().__init__()
        self.account = Account("hard", tokens=100, microusd=70)
        self.open: list[Amount] = []
        self.spent = Amount()

    @rule(tokens=CALLS, microusd=CALLS)
    def reserve(self, tokens: int, microusd: int) -> None:
        asked = Amount(tokens, microusd)
        if judge([finding(self.account, asked)], asked).can_proceed:
            self.account = self.account.reserve(asked)
            self.open.append(asked)

    @rule(which=st.integers(0, 5), share=st.floats(0, 1))
    def settle(self, which: int, share: float) -> None:
        if which < len(self.open):
            held = self.open.pop(which)
            spent = Amount(int(held.tokens * share), int(held.microusd * share))
            self.account = self.account.settle(held, spent)
            self.spent += spent

    @rule(which=st.integers(0, 5))
    def release(self, which: int) -> None:
        if which < len(self.open):
            self.account = self.account.settle(self.open.pop(which), Amount())

    @invariant()
    def never_beyond_the_limit(self) -> None:
        taken = self.account.taken
        assert taken.tokens <= 100
        assert taken.microusd <= 70

    @invariant()
    def nothing_is_lost_or_counted_twice(self) -> None:
        assert self.account.used == self.spent
        held = (
            sum((one.tokens for one in self.open), 0),
            sum((one.microusd for one in self.open), 0),
        )
        assert (self.account.reserved.tokens, self.account.reserved.microusd) == held


TestAgents = Agents.TestCase


@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 100))
def test_a_granted_call_always_fits(used: int, asked: int, more: int):
    account = Account("approval", tokens=100, used=Amount(used))
    assert account.grant(Amount(asked), Amount(more)).exceeded(Amount(asked)) == ()


def test_days_like_these():
    made = project(7, 14, 140, (2, 4_000), (1, 200))
    assert made is not None
    assert (made.sessions, made.calls_per_session, made.tokens_per_call) == (2, 10, 2_000)
    assert (made.tokens_a_day, made.microusd_a_day) == (40_000, 4_000)
    assert (made.tokens_a_month, made.microusd_a_month) == (1_200_000, 120_000)


def test_what_was_not_reported_is_unknown():
    assert project(7, 3, 30, (0, 0), (0, 0)) is None
    assert project(7, 0, 0, (0, 0), (0, 0)) is None
    unpriced = project(7, 3, 30, (1, 10), (0, 0))
    assert unpriced is not None
    assert unpriced.microusd_a_day is None
    assert unpriced.microusd_a_month is None
