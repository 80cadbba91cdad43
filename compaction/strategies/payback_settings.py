"""The settings of payback, and the known problems of some of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compaction.proposals.setting import setting
from compaction.proposals.strategy import Place, Remark


@dataclass(frozen=True, slots=True)
class Payback:
    """When tool inputs and outputs are ripe, and when ripe ones are offloaded.

    All numbers are our choice, by measurement (docs/policies/policies.md); the formula is in
    docs/sources.md, Worked cache example.
    """

    results: int = setting(
        3,
        "Offload a result after",
        "How long results of commands and searches stay before they can be offloaded.",
        "Tool results",
        "steps",
        between=(0, 10_000),
        tries=(1, 2, 3, 5, 8, 12),
        drawn=range(5),
    )
    readings: int = setting(
        20,
        "Offload a file after",
        "How long the text of a file that was read stays before it can be offloaded.",
        "Files",
        "steps",
        between=(0, 10_000),
        tries=(3, 5, 8, 12, 20, 40, 80),
        drawn=range(9),
    )
    done: int = setting(
        1,
        "Offload a changed file after",
        "How long the text of a file stays once the file was changed or read again.",
        "Files",
        "steps",
        between=(0, 10_000),
        advanced=True,
        tries=(0, 1, 3, 8),
        drawn=range(4),
    )
    settled: int = setting(
        10_000,
        "Offload a finished task's files after",
        "How long it stays once its task is over: a person wrote again, or a commit was made.",
        "Files",
        "steps",
        between=(0, 10_000),
        advanced=True,
        slider=(0, 100),
        tries=(0, 3, 5, 10, 20),
        drawn=range(9),
    )
    inputs: int = setting(
        30,
        "Offload tool inputs after",
        "How long inputs of tools and results of edits stay before they can be offloaded.",
        "Tool results",
        "steps",
        between=(0, 10_000),
        advanced=True,
        tries=(3, 5, 10, 20, 30, 60),
        drawn=range(9),
    )
    patience: float = setting(
        3.0,
        "For cost: offload once keeping has cost",
        "Lower offloads sooner, higher breaks the cache less; only when optimizing for cost.",
        "Cache",
        "× the cache write",
        between=(0.0, 100.0),
        objective="cheap",
        tries=(0.5, 1, 2, 3, 5, 8),
        drawn=(0.0, 0.5, 2.5),
    )
    haste: float = setting(
        1.0,
        "For size: offload once keeping has cost",
        "Lower offloads sooner, higher breaks the cache less; only when optimizing for size.",
        "Cache",
        "× the cache write",
        between=(0.0, 100.0),
        objective="lean",
        tries=(0.25, 0.5, 1, 2, 3),
        drawn=(0.0, 1.0),
    )
    said: int = setting(
        40,
        "Offload the agent's texts after",
        "How long texts of the agent stay before they can be offloaded.",
        "Messages",
        "steps",
        between=(0, 10_000),
        advanced=True,
        zero="never",
        tries=(0, 4, 8, 15, 40),
    )
    thought: int = setting(
        1,
        "Remove thinking after",
        "How long thinking stays once its turn is over.",
        "Messages",
        "steps",
        between=(0, 10_000),
        advanced=True,
        zero="never",
    )
    listed: float = setting(
        0.03,
        "Keep in a stub up to",
        "Lines of a file, or names of other texts, that nothing else in the context shows.",
        "Files",
        "% of the text",
        between=(0.0, 1.0),
        advanced=True,
        zero="nothing",
        drawn=(0.0, 0.03, 0.3),
    )
    full: float = setting(
        0.8,
        "Offload at any cost when the window is",
        "Fill, minus the reserve, at which everything due is offloaded even at a loss.",
        "Cache",
        "% full",
        between=(0.05, 1.0),
        advanced=True,
        tries=(0.5, 0.6, 0.7, 0.8, 0.9),
        drawn=(0.3, 0.8),
    )
    relevant: float = setting(
        0.0,
        "When full, offload by relevance down to",
        "Once full, the least relevant blocks leave early until the window is down to this fill.",
        "Cache",
        "% full",
        between=(0.0, 1.0),
        advanced=True,
        zero="off",
        tries=(0.0, 0.6, 0.7, 0.8),
        drawn=(0.0, 0.3, 0.7),
    )
    follow: float = setting(
        0.0,
        "Adapt ages to cover",
        "Age files by their last use, long enough for this share of the session's later uses.",
        "Files",
        "% of later uses",
        between=(0.0, 1.0),
        advanced=True,
        zero="off",
        tries=(0.0, 0.7, 0.8, 0.95),
        drawn=(0.0, 0.5, 1.0),
    )
    minimum: int = setting(
        50,
        "Offload if it saves at least",
        "Keep the text if a stub would save fewer tokens than this.",
        "Tool results",
        "tokens",
        between=(1, 1_000_000),
        advanced=True,
        drawn=(1, 50),
    )
    exclude: tuple[str, ...] = setting(
        (),
        "Never offload these tools",
        "Tools whose inputs and outputs always stay.",
        "Tool results",
        advanced=True,
    )


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
