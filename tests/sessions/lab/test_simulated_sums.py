"""Results over many sessions: sums, spreads, and regressions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.models.lab.simulated_sums import (
    MOST_REGRESSIONS,
    against_active,
    against_recorded,
    quantile,
    regressions,
    spread,
    sums,
)


def figures(**given: Any) -> dict[str, Any]:
    """Figures of one session, easy to vary."""
    return {
        "steps": 10, "tokens_sent": 1_000, "tokens_sent_recorded": 2_000, "peak_tokens": 200,
        "window": 1_000, "cost_microusd": 50, "cost_recorded_microusd": 100,
        "read_backs_microusd": 0,
        "cache_read_share": 0.5, "compactions": 1, "revisions": 2, "read_back_tokens": 30,
        "needs": 20, "in_context": 1.0, "named": 0.0, "retrievable": 0.0, "lost": 0.0,
        "costliest": None, "ms_per_step": 1.0,
    } | given  # fmt: skip


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([3.0], 0.9, 3), ([1, 2], 0.5, 1.5), ([4, 1, 3, 2, 5], 0.5, 3), ([0, 10], 0.1, 1),
     ([1, 2, 3], 1.0, 3), ([1, 2, 3], 0.0, 1)],
)  # fmt: skip
def test_a_quantile_lies_between_two_neighbours(values, share, expected):
    assert quantile(values, share) == pytest.approx(expected)


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_a_spread_is_in_order_and_within_its_values(values):
    found = spread(values)
    assert found is not None
    edge = 1e-9 * max(values)
    assert min(values) - edge <= found["p10"] <= found["median"] + edge
    assert found["median"] <= found["p90"] + edge <= max(values) + 2 * edge
    assert found["n"] == len(values)


def test_shares_are_weighted_and_what_is_unknown_stays_out():
    answer = sums(
        [
            figures(needs=30, in_context=0.5, lost=0.5, ms_per_step=4.0, steps=30),
            figures(tokens_sent=3_000, needs=10, cache_read_share=None, cost_microusd=None,
                    cost_recorded_microusd=None, peak_tokens=900),
        ]
    )  # fmt: skip
    assert (answer["steps"], answer["tokens_sent"], answer["needs"]) == (40, 4_000, 40)
    assert answer["in_context"] == pytest.approx((30 * 0.5 + 10) / 40)
    assert answer["cache_read_share"] == 0.5, "of the one session where it is known"
    assert (answer["priced"], answer["cost_microusd"], answer["cost_recorded_microusd"]) == (
        1,
        50,
        100,
    )
    assert answer["ms_per_step"] == pytest.approx((30 * 4 + 10) / 40)
    assert answer["peak_tokens"] == 900
    assert answer["peak_share"]["median"] == pytest.approx(0.55)


def test_nothing_known_is_null_and_no_zero():
    answer = sums([figures(cost_microusd=None, cost_recorded_microusd=None, needs=0)])
    assert (
        answer["cost_microusd"] is answer["cost_recorded_microusd"] is answer["in_context"] is None
    )
    nothing = sums([])
    assert nothing["cost_microusd"] is nothing["peak_share"] is nothing["cache_read_share"] is None
    assert against_recorded([]) == {"tokens": None, "cost": None}


def test_the_recording_has_what_applies_to_it():
    keys = ("steps", "tokens_sent", "peak_tokens", "window", "cost_microusd", "cache_read_share",
            "compactions")  # fmt: skip
    answer = sums([{key: figures()[key] for key in keys}])
    assert (answer["tokens_sent"], answer["cost_microusd"], answer["compactions"]) == (1_000, 50, 1)
    assert answer["in_context"] is None
    assert "tokens_sent_recorded" not in answer


def test_costs_include_reading_back_which_a_recording_has_paid_for():
    draft = [figures(read_backs_microusd=25), figures(read_backs_microusd=5)]
    assert sums(draft)["charged_microusd"] == 130
    assert against_recorded(draft)["cost"]["median"] == pytest.approx((0.75 + 0.55) / 2)
    pairs = [(one, figures()) for one in draft]
    assert against_active(pairs)["cost"]["median"] == pytest.approx((1.5 + 1.1) / 2)
    assert sums([figures(read_backs_microusd=None)])["charged_microusd"] is None
    recorded = {"cost_microusd": 50, "peak_tokens": 1, "window": 9}
    assert sums([recorded])["charged_microusd"] == 50


def test_versions_compare_session_by_session():
    active = figures(cost_microusd=100)
    answer = against_active(
        [
            (figures(cost_microusd=80, in_context=0.9), active),
            (figures(cost_microusd=100), active),
            (figures(cost_microusd=130, needs=0), active),
            (figures(cost_microusd=None), active),
        ]
    )
    assert (answer["priced"], answer["cheaper"], answer["costlier"]) == (3, 1, 1)
    assert (answer["with_needs"], answer["hides_more"]) == (3, 1)
    assert (answer["cost"]["median"], answer["cost"]["n"]) == (1.0, 3)
    assert answer["tokens"]["n"] == 4
    assert against_recorded([figures()])["cost"]["median"] == 0.5


LOST = [
    {"step": 9, "fact": "b_9", "state": "lost", "block": "m3.0", "entry": "3"},
    {"step": 7, "fact": "a_7", "state": "lost", "block": "m2.1", "entry": "2.1"},
    {"step": 2, "fact": "c_2", "state": "retrievable", "block": "m1.0", "entry": "1"},
]
COSTLIEST = {"step": 4, "rewritten": 12_000, "cost_microusd": 9}


@pytest.mark.parametrize(
    ("mine", "worst", "harm", "step", "fact", "says"),
    [
        # Half as expensive again: at the most expensive edit.
        ({"cost_microusd": 75, "costliest": COSTLIEST}, [], 0.5, 4, None,
         "+50 % cost including reading back against old@1; the most expensive edit, at step 4, "
         "writes 12,000 cached tokens"),
        # 40 % less in context: shown at the first need that was lost, not the first that was only
        # named.
        ({"in_context": 0.6, "lost": 0.4}, LOST, 0.4, 7, "a_7",
         "8 more of 20 needs not in context; first lost at step 7."),
        ({"in_context": 0.6, "retrievable": 0.4}, LOST[2:], 0.4, 2, "c_2", "only retrievable"),
        ({"in_context": 0.6, "named": 0.4}, [LOST[0] | {"state": "named"}], 0.4, 9, "b_9",
         "only named"),
        # Newly lost without less in context: shown at the need, however expensive an edit is.
        ({"cost_microusd": 75, "costliest": COSTLIEST, "in_context": 1.0, "lost": 0.1}, LOST, 0.6,
         7, "a_7", "Loses 10.0 % of needed facts. First lost at step 7."),
        # Neither a need nor an edit explains it: more tokens were sent, which the last step shows
        # in full.
        ({"cost_microusd": 75, "tokens_sent": 1_370}, [], 0.5, 10, None,
         "+50 % cost including reading back against old@1; tokens sent: +37 %."),
        # Both: the worse one determines the step.
        ({"cost_microusd": 60, "costliest": COSTLIEST, "in_context": 0.6}, LOST, 0.6, 7, "a_7",
         "step 4"),
        ({"cost_microusd": 95, "costliest": COSTLIEST, "in_context": 0.6}, LOST, 1.3, 4, None,
         "step 7"),
        # Savings do not offset losses; an unknown price is ignored.
        ({"cost_microusd": 10, "in_context": 0.9}, LOST, 0.1, 7, "a_7", "2 more of 20"),
        ({"cost_microusd": None, "in_context": 0.9}, LOST, 0.1, 7, "a_7", "2 more of 20"),
    ],
)  # fmt: skip
def test_a_regression_says_where_it_shows_and_why(mine, worst, harm, step, fact, says):
    [found] = regressions([("s", figures(**mine), worst, figures())], "old@1")
    assert found.harm == pytest.approx(harm)
    assert (found.step, found.fact) == (step, fact)
    assert says in found.why


@pytest.mark.parametrize(
    "mine",
    [{}, {"cost_microusd": 40}, {"needs": 9, "in_context": 0.0}, {"in_context": 0.995}],
    ids=["the same", "cheaper", "too few needs to tell", "too little harm"],
)
def test_what_is_no_regression(mine):
    other = figures(needs=mine.get("needs", 20))
    assert regressions([("s", figures(**mine), LOST, other)], "old@1") == []


def test_the_worst_come_first_and_not_all_of_them():
    rows = [(n, figures(cost_microusd=51 + n), [], figures()) for n in range(40)]
    found = regressions(rows, "old@1")
    assert [one.key for one in found] == list(range(39, 39 - MOST_REGRESSIONS, -1))
