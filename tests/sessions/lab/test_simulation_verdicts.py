"""The sentence on top of a simulation, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from sessions.actions.lab.simulation_verdicts import SimulationVerdict, simulation_verdict


def side(cost: int | None = 100_000, recall: float | None = 0.8, **more: Any) -> dict[str, Any]:
    priced = 0 if cost is None else 4
    return {
        "cost_microusd": cost, "priced": priced, "tokens_sent": 1_000, "in_context": recall,
        "edits_feasible": 0.9, "cost_recorded_microusd": 200_000, **more,
    }  # fmt: skip


def recorded(cost: int | None = 100_000, recall: float | None = 0.8, **more: Any) -> dict[str, Any]:
    """A recording has no recorded cost beside its own."""
    found = side(cost, recall, **more)
    del found["cost_recorded_microusd"]
    return found


def judged(
    draft: dict[str, Any], active: dict[str, Any] | None = None, *, over: bool = True
) -> SimulationVerdict:
    return simulation_verdict(draft, active or side(), recorded(200_000, 0.5), 4, 5, over=over)


@pytest.mark.parametrize(
    ("draft", "tone", "sentence", "dominated"),
    [
        (
            side(121_000, 0.715),
            "bad",
            "Worse on both: +21 % cost, −8.5 points recall. Don't propose.",
            True,
        ),
        (
            side(121_000, 0.8),
            "bad",
            "Worse: +21 % cost, same recall. Don't propose.",
            True,
        ),
        (
            side(100_000, 0.79),
            "bad",
            "Worse: same cost, −1.0 points recall. Don't propose.",
            True,
        ),
        (side(88_000, 0.812), "good", "Better on both: −12 % cost, +1.2 points recall.", False),
        (side(96_700, 0.8), "good", "Better: −3.3 % cost, same recall.", False),
        (side(100_000, 0.9), "good", "Better: same cost, +10.0 points recall.", False),
        (
            side(88_000, 0.78),
            "neutral",
            "Undecided: −12 % cost, −2.0 points recall.",
            False,
        ),
        (
            side(103_300, 0.884),
            "neutral",
            "Undecided: +3.3 % cost, +8.4 points recall.",
            False,
        ),
        (side(), "neutral", "No difference: same cost, same recall.", False),
        (side(100_040, 0.8004), "neutral", "No difference: same cost, same recall.", False),
        (side(121_000, None), "neutral", "+21 % cost, recall unknown.", False),
        (
            side(None, 0.7, tokens_sent=1_100),
            "bad",
            "Worse on both: +10 % tokens sent, −10.0 points recall. Don't propose.",
            True,
        ),
    ],
)
def test_a_draft_is_judged_by_cost_and_recall_against_the_active_version(
    draft: dict[str, Any], tone: str, sentence: str, dominated: bool
) -> None:
    found = judged(draft)
    assert (found.tone, found.sentence, found.dominated) == (tone, sentence, dominated)


@pytest.mark.parametrize(
    ("again", "active_again", "tone", "sentence"),
    [
        (2_000, {"read_backs_microusd": 0}, "good", "Better: −10 % cost including reading back"),
        (
            20_000,
            {"read_backs_microusd": 5_000},
            "bad",
            "Worse on both: +2.9 % cost including reading back (−12 % without), −2.0 points",
        ),
        (
            12_000,
            {"read_backs_microusd": 0},
            "bad",
            "Worse: same cost including reading back (−12 % without), −2.0",
        ),
        (2_000, {"read_backs_microusd": None}, "neutral", "Undecided:"),
    ],
)
def test_a_draft_that_costs_less_and_keeps_less_is_judged_with_reading_back(
    again: int, active_again: dict[str, Any], tone: str, sentence: str
) -> None:
    found = judged(side(88_000, 0.78, read_backs_microusd=again), side(**active_again))
    assert (found.tone, found.sentence.startswith(sentence)) == (tone, True), found.sentence


@pytest.mark.parametrize(
    ("cost", "recall", "tone", "sentence"),
    [
        (98_800, 0.751, "good", "Better: −1.2 % cost, −4.9 points recall."),
        (98_800, 0.409, "neutral", "Cheaper, but keeps less: −1.2 % cost, −39.1 points recall."),
        (101_200, 0.849, "bad", "Worse: +1.2 % cost, +4.9 points recall."),
        (
            101_200,
            0.951,
            "neutral",
            "Keeps more, but costs more: +1.2 % cost, +15.1 points recall.",
        ),
    ],
)
def test_beyond_five_points_of_recall_it_is_a_trade(
    cost: int, recall: float, tone: str, sentence: str
) -> None:
    found = judged(
        side(cost, recall, read_backs_microusd=0), side(100_000, 0.8, read_backs_microusd=0)
    )
    assert (found.tone, found.sentence.replace(" including reading back", "")) == (tone, sentence)


def test_the_detail_has_the_amounts_of_the_headline() -> None:
    """The percentage and the dollars are of one figure: the cost including reading back."""
    draft = side(66_000, 0.78, priced=3, read_backs_microusd=6_000)
    found = simulation_verdict(draft, None, recorded(priced=3), 4, 4, over=True)
    assert found.sentence == (
        "Against the recording: better: −28 % cost including reading back (−34 % without), "
        "−2.0 points recall."
    )
    assert found.detail.startswith("$0.072 instead of $0.10 over 4 sessions (3 with a price); ")


def test_the_detail_has_the_amounts_the_recording_and_the_edits() -> None:
    assert judged(side(121_000, 0.715, edits_feasible=0.85)).detail == (
        "$0.12 instead of $0.10 over 4 sessions; recall 71.5 % instead of 80.0 %. "
        "Against the recording −40 % cost, +21.5 points recall. "
        "Edits whose old text is in context: −5.0 points."
    )
    lost = judged(side(221_000, 0.4)).detail
    assert "Against the recording +10 % cost, −10.0 points recall: worse on both." in lost
    assert "Edits" not in lost


def test_the_active_version_is_compared_with_the_recording_alone() -> None:
    found = simulation_verdict(side(220_000, 0.4), None, recorded(200_000, 0.5), 4, 4, over=True)
    assert found.sentence == (
        "Against the recording: worse on both: +10 % cost, −10.0 points recall."
    )
    assert (found.tone, found.dominated) == ("bad", False)
    assert "Against the recording" not in found.detail


def test_it_is_open_while_results_come_and_says_how_many_are_there() -> None:
    found = judged(side(121_000, 0.7), over=False)
    assert found.sentence == (
        "So far, 4 of 5 sessions. Worse on both: +21 % cost, −10.0 points recall."
    )
    assert (found.tone, found.dominated) == ("neutral", False)
    nothing = [simulation_verdict(side(), side(), side(), 0, 5, over=over) for over in (0, 1)]
    assert [one.sentence for one in nothing] == [
        "No session is done yet.", "No session could be simulated.",
    ]  # fmt: skip


def test_sums_of_different_sessions_are_compared_by_tokens_and_few_prices_are_said() -> None:
    found = judged(side(1, priced=3, tokens_sent=900))
    assert found.sentence == "Better: −10 % tokens sent, same recall."
    assert found.detail.startswith("900 tokens instead of 1.0k over 4 sessions; ")
    some = judged(side(50_000, priced=3), side(priced=3))
    assert "over 4 sessions (3 with a price)" in some.detail
