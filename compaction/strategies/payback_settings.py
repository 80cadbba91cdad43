"""The settings of payback, and the known problems of some of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from compaction.proposals.strategy import Place, Remark


@dataclass(frozen=True, slots=True)
class Payback:
    """When tool inputs and outputs are ripe, and when ripe ones are offloaded.

    All numbers are our choice, by measurement (docs/policies/presets.md); the formula is in
    docs/sources.md, Worked cache example.
    """

    results: int = field(
        default=3,
        metadata={
            "min": 0,
            "max": 10_000,
            "tries": (1, 2, 3, 5, 8, 12),
            "first": True,
            "drawn": range(5),
            "help": "Steps until the result of a command or a search can be offloaded.",
        },
    )
    readings: int = field(
        default=20,
        metadata={
            "min": 0,
            "max": 10_000,
            "tries": (3, 5, 8, 12, 20, 40, 80),
            "first": True,
            "drawn": range(9),
            "help": "Steps until the text of a file that was read can be offloaded.",
        },
    )
    done: int = field(
        default=1,
        metadata={
            "min": 0,
            "max": 10_000,
            "tries": (0, 1, 3, 8),
            "drawn": range(4),
            "help": "Steps until it can be offloaded once the file was changed or read again.",
        },
    )
    settled: int = field(
        default=10_000,
        metadata={
            "min": 0,
            "max": 10_000,
            "tries": (0, 3, 5, 10, 20),
            "drawn": range(9),
            "help": "Steps until it can be offloaded once its task is over: a person wrote again, "
            "or a commit was made.",
        },
    )
    inputs: int = field(
        default=30,
        metadata={
            "min": 0,
            "max": 10_000,
            "tries": (3, 5, 10, 20, 30, 60),
            "first": True,
            "drawn": range(9),
            "help": "Steps until inputs of tools and results of edits can be offloaded.",
        },
    )
    patience: float = field(
        default=3.0,
        metadata={
            "min": 0.0,
            "max": 100.0,
            "tries": (0.5, 1, 2, 3, 5, 8),
            "first": True,
            "objective": "cheap",
            "drawn": (0.0, 0.5, 2.5),
            "help": "Offload once reading ripe blocks has cost this many times the rewrite, "
            "with the objective cheap.",
        },
    )
    haste: float = field(
        default=1.0,
        metadata={
            "min": 0.0,
            "max": 100.0,
            "tries": (0.25, 0.5, 1, 2, 3),
            "first": True,
            "objective": "lean",
            "drawn": (0.0, 1.0),
            "help": "Offload once reading ripe blocks has cost this many times the rewrite, "
            "with the objective lean.",
        },
    )
    said: int = field(
        default=40,
        metadata={
            "min": 0,
            "max": 10_000,
            "tries": (0, 4, 8, 15, 40),
            "help": "Steps until texts of the agent can be offloaded; 0 for never.",
        },
    )
    thought: int = field(
        default=1,
        metadata={
            "min": 0,
            "max": 10_000,
            "help": "Steps after its turn until thinking can be removed; 0 for never.",
        },
    )
    listed: float = field(
        default=0.03,
        metadata={
            "min": 0.0,
            "max": 1.0,
            "drawn": (0.0, 0.03, 0.3),
            "help": "Share of a text that its stub may keep if nothing else shows it: lines of a "
            "file that was read, names of other texts.",
        },
    )
    full: float = field(
        default=0.8,
        metadata={
            "min": 0.05,
            "max": 1.0,
            "tries": (0.5, 0.6, 0.7, 0.8, 0.9),
            "drawn": (0.3, 0.8),
            "help": "Offload everything ripe at this share of the window minus the reserve, "
            "regardless of cost.",
        },
    )
    relevant: float = field(
        default=0.0,
        metadata={
            "min": 0.0,
            "max": 1.0,
            "tries": (0.0, 0.6, 0.7, 0.8),
            "drawn": (0.0, 0.3, 0.7),
            "help": "Once full, also offload the least relevant of what is not ripe, down to this "
            "share of the window minus the reserve; 0: ripe only.",
        },
    )
    follow: float = field(
        default=0.0,
        metadata={
            "min": 0.0,
            "max": 1.0,
            "tries": (0.0, 0.7, 0.8, 0.95),
            "drawn": (0.0, 0.5, 1.0),
            "help": "Count ages from the last use, and let that of readings cover this share of "
            "the session's own later uses; 0: fixed.",
        },
    )
    minimum: int = field(
        default=50,
        metadata={
            "min": 1,
            "max": 1_000_000,
            "drawn": (1, 50),
            "help": "Keep the text if a stub would save fewer tokens than this.",
        },
    )
    exclude: tuple[str, ...] = field(default=(), metadata={"help": "Tools to leave unchanged."})


def payback_remarks(place: Place, given: Payback) -> Iterator[Remark]:
    if place.parameters_of("offload"):
        text = (
            "Offload removes by age what payback would remove by price, so payback has little left "
            "to do. Keep one of the two: payback costs less, offload keeps the prompt smaller."
        )
        yield Remark("", text, "note")
    trigger = place.trigger()
    if trigger is not None and int(given.full * place.room) > trigger:
        text = (
            f"History is summarized at {trigger:,} tokens, before everything ripe is offloaded at "
            f"{int(given.full * place.room):,}: it loses facts that a stub would keep. Set it "
            f"below the trigger."
        )
        yield Remark("full", text, "note")
    if given.readings <= given.done:
        text = (
            f"Readings are ripe after {given.readings} steps, even if their file was not changed "
            f"since. Keep it above {given.done}: readings that were not acted on are still needed."
        )
        yield Remark("readings", text, "note")
    if place.objective == "cheap" and given.patience < 1:
        text = (
            "Text is offloaded before reading it has cost as much as rewriting the cache, so many "
            "edits never pay back. Set it to 1 or more."
        )
        yield Remark("patience", text, "warning")
