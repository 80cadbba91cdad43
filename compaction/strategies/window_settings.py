"""The settings of the sliding window, and the known problems of some of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from compaction.proposals.strategy import Place, Remark
from compaction.summaries.settings_lint import summary_remarks


@dataclass(frozen=True, slots=True)
class Window:
    """How the window is cut.

    3 primers, 20 recents, 0.75, half of it and 400 tokens: Shannon, whose cases also count
    `messages` (30, 75, 100). `progress` and `rearm` as for compaction.
    """

    primers: int = field(
        default=3,
        metadata={
            "min": 0,
            "max": 1_000,
            "first": True,
            "drawn": range(6),
            "help": "Messages to keep at the beginning.",
        },
    )
    recents: int = field(
        default=20,
        metadata={
            "min": 0,
            "max": 1_000,
            "tries": (10, 20, 40, 80),
            "first": True,
            "drawn": range(21),
            "help": "Newest messages to keep, as far as they fit.",
        },
    )
    trigger: float = field(
        default=0.75,
        metadata={
            "min": 0.1,
            "max": 0.95,
            "first": True,
            "drawn": (0.4, 0.75),
            "help": "Summarize the messages between them at this share of the budget.",
        },
    )
    target: float = field(
        default=0.375,
        metadata={
            "min": 0.05,
            "max": 0.9,
            "tries": (0.25, 0.375, 0.5, 0.7),
            "first": True,
            "drawn": (0.05, 0.3, 0.6, 0.9),
            "help": "Reduce the context to this share of the budget.",
        },
    )
    budget: int = field(
        default=0,
        metadata={
            "min": 0,
            "max": 10_000_000,
            "tries": (16_000, 32_000, 64_000, 128_000),
            "first": True,
            "drawn": (0, 600, 3_000),
            "help": "Budget of the conversation in tokens; 0 for the model's window minus the "
            "reserve.",
        },
    )
    messages: int = field(
        default=0,
        metadata={
            "min": 0,
            "max": 10_000,
            "first": True,
            "drawn": (0, 5, 20),
            "help": "Also summarize above this many messages; 0 for no limit.",
        },
    )
    summary_tokens: int = field(
        default=400,
        metadata={"min": 100, "max": 50_000, "help": "Maximum size of the summary, in tokens."},
    )
    relevant: float = field(
        default=0.0,
        metadata={
            "min": 0.0,
            "max": 0.9,
            "tries": (0.0, 0.15, 0.3),
            "drawn": (0.0, 0.3, 0.8),
            "help": "Share of the target for messages between them that are most relevant to the "
            "task, kept verbatim; 0: all are summarized.",
        },
    )
    progress: float = field(
        default=0.10,
        metadata={
            "min": 0.0,
            "max": 0.9,
            "drawn": (0.0, 0.1, 0.3),
            "help": "Skip a summary that would free less than this share of the context.",
        },
    )
    rearm: float = field(
        default=0.10,
        metadata={
            "min": 0.0,
            "max": 0.9,
            "drawn": (0.0, 0.1, 0.3),
            "help": "Try again only after the context has grown by this share of the budget.",
        },
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
