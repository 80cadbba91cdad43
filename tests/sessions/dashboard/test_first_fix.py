"""The sentence that names what to do first, and which fix that is."""

from __future__ import annotations

from collections import Counter

import pytest

from sessions.models.web.sums import Sums
from sessions.views.dashboard.first_fix import first_line, weeks_in
from sessions.views.dashboard.fixes import OPEN, SIMULATE
from sessions.views.dashboard.ranking import MOST, Fix, ranked

pytestmark = [pytest.mark.django_db, pytest.mark.store]


@pytest.mark.parametrize(
    ("microusd", "weeks", "spent", "said"),
    [
        (30_000_000, 3.0, None, "$30.00 of the $109.00 spent in 28 sessions with a known cost "
                                "($10.00 a week)"),
        (30_000_000, 0, None, "$30.00 of the $109.00 spent in 28 sessions with a known cost"),
        (2_000_000, 3.0, (5_000_000, 1), "$2.00 of the $5.00 spent in 1 session with a known "
                                         "cost"),
        (None, 3.0, None, ""),
        (-1, 3.0, None, ""),
    ],
)  # fmt: skip
def test_the_first_fix_is_said_in_dollars_of_those_spent(
    microusd: int | None, weeks: float, spent: tuple[int, int] | None, said: str
) -> None:
    fix = Fix("break", "Keep it", "", microusd, "estimated", "See which", "", at_most=True,
              sessions=2, spent=spent)  # fmt: skip
    whole = Sums(Counter(cost=109_000_000, priced=28, sessions=29))
    sentence = f"First: keep it. Saves at most {said}, estimated from the usage of 2 sessions"
    sentence += ", and loses nothing. “See which” lists these tools, and changes nothing."
    assert first_line([fix], whole, weeks) == (sentence if said else "")


@pytest.mark.parametrize(
    ("fix", "said"),
    [
        (Fix("loss", "Manage", "", None, "", SIMULATE, ""), "First: simulate policies on these "
         "sessions. What they save is unknown until then. “Simulate” starts it on the newest 20 "
         "sessions with lost facts, and shows it on Policies; no session changes."),
        (Fix("break", "Use it", "", 5, "estimated", "Change TTL", "/p/edit/?set=ttl"),
         "“Change TTL” opens the policy editor with this value; sessions use it once you save it "
         "and roll it out."),
        (Fix("break", "Use it", "", 5, "estimated", "Change TTL", "/policies/balanced/"),
         "“Change TTL” opens the policy, and changes nothing."),
        (Fix("loss", "Manage", "", 5, "simulated", OPEN, "", sessions=3),
         "simulated on 3 sessions, and loses nothing. “Open comparison” shows the simulation"),
    ],
    ids=["simulate", "edit", "read only", "compare"],
)  # fmt: skip
def test_the_first_fix_says_what_its_button_does(fix: Fix, said: str) -> None:
    assert said in first_line([fix], Sums(Counter(cost=10, priced=1)), 0)


@pytest.mark.parametrize(
    ("days", "weeks"),
    [([], 0), ([3], 0), ([1, 7, 13], 0), ([1, 7, 14], 2), ([1, 8, 14], 2), ([1, 9, 14], 0),
     ([28, 1, 9, 17, 22], 0), ([21, 1, 7, 14], 3)],
)  # fmt: skip
def test_a_week_is_said_of_sessions_of_two_weeks_without_a_week_between_them(
    days: list[int], weeks: float
) -> None:
    assert weeks_in(days) == weeks


def test_what_comes_first_loses_no_recall_if_that_saves_too() -> None:
    def fix(title: str, microusd: int | None, forgets: float | None = 0) -> Fix:
        return Fix("loss", title, "", microusd, "", "", "", forgets=forgets)

    most, less, little = fix("most", 9, 0.044), fix("less", 5, 0.01), fix("little", 2)
    unknown, none, dear = fix("unknown", None), fix("none", 0), fix("dear", -1)
    assert ranked([little, unknown, less, most]) == [little, most, less, unknown]
    assert ranked([dear, less, none, most]) == [most, less, none, dear], "none of these saves"
    untold = fix("untold", 7, None)
    assert ranked([untold, little]) == [little, untold], "it may lose something"
    assert untold.loses == "recall unknown" and most.loses == "−4.4 points recall"
    whole = Sums(Counter(cost=10, priced=1))
    assert "; whether it keeps what is needed later is unknown." in first_line([untold], whole, 0)
    assert first_line([little, most], whole, 0).startswith("First, because it loses nothing: ")
    assert "and loses nothing" not in first_line([little, most], whole, 0), "said once"
    assert ranked([most, *[less] * MOST, little])[0] == little, "it is not cut off"
