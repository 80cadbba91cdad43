"""The settings of the sliding window, and the known problems of some of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compaction.proposals.setting import least_share, setting
from compaction.proposals.strategy import Place, Remark
from compaction.summaries.settings_lint import summary_remarks


@dataclass(frozen=True, slots=True)
class Window:
    """How the window is cut.

    3 primers, 20 recents, 0.75, half of it and 400 tokens: Shannon, whose cases also count
    `messages` (30, 75, 100). `progress` and `rearm` as for compaction.
    """

    primers: int = setting(
        3,
        "Keep the first",
        "Messages to keep at the beginning.",
        "Messages",
        "messages",
        between=(0, 1_000),
        zero="none",
        drawn=range(6),
    )
    recents: int = setting(
        20,
        "Keep the newest",
        "Newest messages to keep, as far as they fit.",
        "Messages",
        "messages",
        between=(0, 1_000),
        zero="none",
        tries=(10, 20, 40, 80),
        drawn=range(21),
    )
    trigger: float = setting(
        0.75,
        "Summarize when the budget is",
        "Share of the budget at which the messages between first and newest are summarized.",
        "Compaction",
        "% full",
        between=(0.1, 0.95),
        drawn=(0.4, 0.75),
    )
    target: float = setting(
        0.375,
        "Summarize down to",
        "Size of the context after a summary, as a share of the budget.",
        "Compaction",
        "% of the budget",
        between=(0.05, 0.9),
        tries=(0.25, 0.375, 0.5, 0.7),
        drawn=(0.05, 0.3, 0.6, 0.9),
    )
    budget: int = setting(
        0,
        "Budget of the conversation",
        "Maximum size of the conversation.",
        "Compaction",
        "tokens",
        between=(0, 10_000_000),
        zero="the window, minus the reserve",
        tries=(16_000, 32_000, 64_000, 128_000),
        drawn=(0, 600, 3_000),
    )
    messages: int = setting(
        0,
        "Summarize above",
        "Also summarize above this many messages, whatever their size.",
        "Messages",
        "messages",
        between=(0, 10_000),
        advanced=True,
        slider=(0, 200),
        zero="any number of messages",
        drawn=(0, 5, 20),
    )
    summary_tokens: int = setting(
        400,
        "Summary of at most",
        "Maximum size of the summary.",
        "Compaction",
        "tokens",
        between=(100, 50_000),
        advanced=True,
    )
    relevant: float = setting(
        0.0,
        "Keep relevant messages up to",
        "Between first and newest, the messages most relevant to the task stay verbatim.",
        "Messages",
        "% of the target",
        between=(0.0, 0.9),
        advanced=True,
        zero="none",
        tries=(0.0, 0.15, 0.3),
        drawn=(0.0, 0.3, 0.8),
    )
    progress: float = least_share(
        "Summarize if it frees at least",
        "Skip a summary that would free less than this share of the context.",
        "% of the context",
    )
    rearm: float = least_share(
        "Summarize again after growth of",
        "Try again only after the context has grown by this share of the budget.",
        "% of the budget",
    )


CROWD = 50
"""Recents that, with a single primer, leave nothing to summarize and no task (Shannon)."""
LEAST_SUMMARY = 200
"""Minimum tokens for the summary's form: half of what the sources use (our choice)."""
MESSAGE = 100
"""Minimum average tokens of a message, to estimate how many recents fit (our choice)."""


def window_remarks(place: Place, given: Window) -> Iterator[Remark]:
    yield from summary_remarks(given, LEAST_SUMMARY)
    if given.primers <= 1 and given.recents >= CROWD:
        text = (
            f"With {given.primers} primers and {given.recents} recents, the task is soon described "
            f"in the summary only. Keep 3 primers and 20 recents."
        )
        yield Remark("primers", text, "warning")
    if 0 < given.messages <= given.primers + given.recents:
        text = (
            f"{given.primers} primers and {given.recents} recents cover all {given.messages} "
            f"messages, so nothing is left to summarize. Set it to about "
            f"{2 * (given.primers + given.recents)}."
        )
        yield Remark("messages", text, "warning")
    target = int(given.target * (given.budget or place.room))
    if given.recents * MESSAGE > target:
        text = (
            f"{given.recents} messages rarely fit the target of {target:,} tokens, so fewer stay. "
            f"Keep at most {max(target // MESSAGE, 1):,}, or raise the target."
        )
        yield Remark("recents", text, "note")
    if given.target >= given.trigger:
        text = (
            "The target is not below the trigger, so the context is cut again at once. Set it to "
            "about half of the trigger."
        )
        yield Remark("target", text, "warning")
