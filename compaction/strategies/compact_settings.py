"""The settings of compaction, and the known problems of some of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from compaction.proposals.setting import least_share, setting
from compaction.proposals.strategy import Place, Remark
from compaction.summaries.settings_lint import summary_remarks


@dataclass(frozen=True, slots=True)
class Compact:
    """When history is summarized, and what is kept verbatim.

    Trigger 0.70 and summaries of 2,000 to 3,000 tokens: CodeGenius; 20,000 tokens of user messages:
    Codex CLI; minimum progress: OpenHands SDK; `rearm`: our choice, Shannon counts messages and
    minutes; instructions: Claude Code, CodeGenius; keeping failures: MaybeAi.
    """

    trigger: float = setting(
        0.70,
        "Compact when the window is",
        "Fill, minus the reserve, at which history is summarized.",
        "Compaction",
        "% full",
        between=(0.05, 0.95),
        tries=(0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
        drawn=(0.3, 0.5, 0.7, 0.9),
    )
    summary_tokens: int = setting(
        3_000,
        "Summary of at most",
        "Maximum size of the summary.",
        "Compaction",
        "tokens",
        between=(200, 50_000),
        tries=(1_000, 2_000, 3_000, 5_000),
        drawn=range(200, 1_001),
    )
    user_tokens: int = setting(
        20_000,
        "Keep user messages up to",
        "User messages to keep verbatim, newest first.",
        "Messages",
        "tokens",
        between=(0, 1_000_000),
        zero="none",
        drawn=range(401),
    )
    progress: float = least_share(
        "Compact if it frees at least",
        "Skip a summary that would free less than this share of the prompt.",
        "% of the prompt",
    )
    rearm: float = least_share(
        "Compact again after growth of",
        "Try again only after the prompt has grown by this share of the window.",
        "% of the window",
    )
    instructions: str = setting(
        "",
        "Instructions for the summarizer",
        "Added to the summarizer's prompt.",
        "Compaction",
        advanced=True,
    )
    keep_failures: bool = setting(
        False,
        "Keep failed calls verbatim",
        "A failed call stays out of the summary until the same operation succeeds.",
        "Compaction",
        advanced=True,
    )
    form: Literal["nine", "progress"] = setting(
        "nine",
        "Sections of a summary",
        "Form of a summary while the task is in progress.",
        "Compaction",
        advanced=True,
        choices={"nine": "nine sections", "progress": "progress report"},
    )
    on_new_topic: bool = setting(
        False,
        "Compact on a new topic",
        "Also summarize history when a person starts a new topic.",
        "Compaction",
        tries=(False, True),
    )
    on_task_done: bool = setting(
        False,
        "Compact when the task is done",
        "Also summarize history once the to-do list is completed or the outcome is reported.",
        "Compaction",
    )
    least_cold: int = setting(
        3_000,
        "Smallest history to compact, cache cold",
        "At a new topic or a finished task, a smaller history stays; with an expired cache.",
        "Compaction",
        "tokens",
        between=(0, 10_000_000),
        advanced=True,
        drawn=range(2_001),
    )
    least_warm: int = setting(
        30_000,
        "Smallest history to compact, cache warm",
        "At a new topic or a finished task, a smaller history stays; with a warm cache.",
        "Compaction",
        "tokens",
        between=(0, 10_000_000),
        advanced=True,
        drawn=range(2_001),
    )


LEAST_SUMMARY = 1_000
"""Minimum tokens for the summary's form: half of what the sources use (our choice)."""


def compact_remarks(place: Place, given: Compact) -> Iterator[Remark]:
    yield from summary_remarks(given, LEAST_SUMMARY)
    if not any(one.puts_aside for one in place.before):
        if any(one.puts_aside for one in place.after):
            text = (
                "Runs before the steps that make stubs, and summarizes what they could have "
                "shortened without loss. Move it after them."
            )
        else:
            text = (
                "Tool output is summarized although it could be offloaded and read back. Add "
                "payback or offload before it: stubs lose nothing, summaries do."
            )
        yield Remark("", text, "note")
    if given.user_tokens >= int(given.trigger * place.room):
        text = (
            f"The user messages to keep can reach the trigger by themselves, at "
            f"{int(given.trigger * place.room):,} tokens in a window of {place.window:,}: then "
            f"nothing is summarized. Set it well below."
        )
        yield Remark("user_tokens", text, "warning")
