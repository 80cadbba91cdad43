"""How our figures beside the published numbers are obtained: for benchmarks/policies/claims.py.

Settings are read from the code, runs go over made-up sessions (`tests/build.py`), and means over
recorded sessions of 30 model calls or more and over 30,000 tokens.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import takewhile
from math import inf
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from benchmarks.reviews.summaries import span
from compaction import tokens
from compaction.advice.lint import remarks
from compaction.board.board import BoardNote, BoardSize, EntryKind, render
from compaction.context.cut import cut
from compaction.context.edits import context_at
from compaction.context.session import Session
from compaction.policies.policy import Policy, Step
from compaction.policies.presets import PRESETS
from compaction.prices.prices import price
from compaction.simulation.run import simulate_cache, terms_of
from compaction.simulation.simulate import Run, simulate
from compaction.strategies.replace import Replace
from compaction.strategies.window import Window
from compaction.summaries.extract import extractive
from compaction.summaries.merge import merge
from tests.build import Talk, coding

ROOT = Path(__file__).resolve().parents[2]
SIZE = 470
"""Tokens that give `coding` messages of 250 in the mean, with its short results."""

Row = dict[str, float | None]


class Ours(NamedTuple):
    """A figure of ours: how it is obtained, and its value given the rows of recorded sessions."""

    how: str
    value: Callable[[Sequence[Row]], float | None]


class Claim(NamedTuple):
    """A published number beside ours.

    `goal` is the least and the most that reaches it, in `unit` ("%" for a share); without one `why`
    is the verdict. Otherwise `why` explains a deliberate difference.
    """

    claim: str
    published: str
    ours: Ours
    goal: tuple[float, float] | None = None
    unit: str = "tokens"
    why: str = ""


def only(number: float) -> tuple[float, float]:
    """The goal of a number that has to be the same."""
    return number, number


def most(number: float) -> tuple[float, float]:
    """The goal of a number that is better when lower."""
    return -inf, number


def least(number: float) -> tuple[float, float]:
    """The goal of a number that is better when higher."""
    return number, inf


def said(value: float, unit: str) -> str:
    """A figure with its unit."""
    if unit == "%":
        return f"{value:.1%}".replace(".0%", "%").replace("%", " %").replace("-", "−")
    number = f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"
    unit = unit.removesuffix("s") if number == "1" else unit
    return f"${number}" if unit == "$" else f"{number} {unit}".strip()


def code(how: str, value: Callable[[], float]) -> Ours:
    """A constant of the code, or a run over a made-up session."""
    return Ours(how, lambda _: value())


def preset(place: str) -> Ours:
    """A setting of a preset's first step of a strategy: "offload-first: offload.age"."""
    name, strategy, field = re.split(r": |\.", place)

    def value() -> float:
        step = next(step for step in PRESETS[name].steps if step.strategy == strategy)
        return float(getattr(step.parameters, field))

    return code(f"`{place}`", value)


def cited(page: str, words: str, value: float) -> Ours:
    """A figure that only another page of docs/ has; its words have to be there."""
    return code(f'[{page}](../../../docs/{page}): "{words}"', lambda: value)


def over(key: str, how: str) -> Ours:
    """The mean over recorded sessions that have a figure; None without any."""

    def value(rows: Sequence[Row]) -> float | None:
        found = [one for row in rows if (one := row.get(key)) is not None]
        return mean(found) if found else None

    return Ours(f"logs: {how}", value)


@cache
def long_run(messages: int, size: int = SIZE, name: str = "sliding-window") -> tuple[Session, Run]:
    """A coding session under a preset."""
    session = coding(messages, size)
    return session, simulate(session, PRESETS[name], tokens.count)


def before(messages: int, size: int = SIZE) -> int:
    """Tokens of a coding session."""
    return sum(block.tokens for block in long_run(messages, size)[0].blocks)


def after(messages: int, size: int = SIZE) -> int:
    """Most tokens after a cut of `sliding-window`; all if it never cuts."""
    revisions = long_run(messages, size)[1].revisions
    return max((one.tokens_after for one in revisions), default=before(messages, size))


def removed(messages: int, size: int = SIZE) -> float:
    """Share of a coding session's tokens that `sliding-window` removes."""
    return 1 - after(messages, size) / before(messages, size)


def messages_after(messages: int, size: int) -> int:
    """Most messages, its summary included, after a cut of `sliding-window`."""
    run = long_run(messages, size)[1]
    contexts = (context_at(run.entries, one.step) for one in run.revisions)
    return max(len({block.message for block in one.values()}) for one in contexts)


def first_cut(budget: int) -> tuple[int, int]:
    """Tokens before and after the first cut in a budget."""
    policy = Policy("claims", steps=(Step("window", Window(budget=budget)),))
    first = simulate(coding(500, SIZE), policy, tokens.count).revisions[0]
    return first.tokens_before, first.tokens_after


def steps_within(name: str) -> int:
    """Steps of a session of 1,000 messages until a context exceeds the window."""
    session, run = long_run(1_000, SIZE, name)
    return sum(1 for _ in takewhile(lambda step: step.total <= session.window, run.steps))


def summary() -> str:
    """The extractive summary of a session of 250,000 tokens."""
    return extractive(span(long_run(1_000)[0].blocks))


def note_chars() -> int:
    """Characters of the window's note on a conversation of 10,000."""
    return len(extractive(span(coding(12, 340).blocks, 400, form="window")))


def dashboards() -> int:
    """Tokens that leave a context when 19 of 20 dashboards are out of date."""
    talk = Talk()
    for number in range(20):
        lines = "src/parser.py edited 3 times, last at step 12\n" * 30
        talk.user(f"Part {number}.\n<dashboard>\n{lines}</dashboard>")
        talk.respond()
        talk.say("Done.")
    ways = (Policy("claims"), Policy("claims", steps=(Step("replace", Replace()),)))
    runs = (simulate(talk.session(), way, tokens.count) for way in ways)
    plain, replaced = (run.steps[-1].total for run in runs)
    return plain - replaced


def entries_of_edits(times: int) -> int:
    """Entries of a summary for so many edits of one file."""
    found = (one for one in coding(1_000, 40).blocks if one.file and one.file.action == "edit")
    first, *rest = [one for one in found if one.type == "tool_use"][:times]
    return len(merge([first, *(replace(one, file=first.file) for one in rest)]).files)


def notes_kept() -> int:
    """Notes of Dakou's example that a board of its usual size shows."""
    kinds: dict[EntryKind, int] = {"task": 1, "plan": 2, "agent": 5, "knowledge": 3}
    text = "Bcrypt is needed, because plain hashes of passwords are not safe. " * 10
    notes = [BoardNote(k, text, f"{k}{n}") for k, many in kinds.items() for n in range(many)]
    return len(render(notes, BoardSize(), tokens.count).kept)


def rows_shown(rows: int) -> int:
    """Rows that `recitation` shows of a table with so many."""
    table = "Date,Close\n" + "".join(f"2022-12-14,{n + 100}.35\n" for n in range(rows))
    given = PRESETS["recitation"].steps[0].parameters
    return len(cut(table.strip(), "a.csv", given.rows, given.head, given.tail).text.split("\n")) - 1


def context_of_tables() -> int:
    """Tokens after MaybeAi's eight rounds, in which three tables of 756 rows are downloaded."""
    talk = Talk()
    talk.system("You are a careful analyst. " * 440)
    talk.user("Compare three stocks over three years and write a report.")
    table = "Date,Close\n" + "".join(f"2022-12-14,{n + 100}.35\n" for n in range(756))
    for number in range(8):
        talk.respond()
        plan = {"path": "todo.md", "content": f"- [x] step {number}\n- [ ] report"}
        given = {"command": f"curl stocks/{number}"} if number in (1, 3, 5) else plan
        use = talk.call("write_file" if given is plan else "Bash", given)
        talk.result(use, "written" if given is plan else table)
    return simulate(talk.session(), PRESETS["recitation"], tokens.count).steps[-1].total


def chat_cost(rounds: int, each: int) -> float:
    """Dollars of input for a chat with GPT-4o in which each call sends what came before."""
    talk = Talk()
    for number in range(rounds):
        talk.user(f"{number} " + "word " * (each // 2))
        talk.respond()
        talk.say(f"{number} " + "word " * (each // 2))
    blocks = tuple(replace(block, tokens=each // 2) for block in talk.blocks)
    made = replace(talk.session(hidden=4_000), blocks=blocks, model="gpt-4o")
    made = replace(made, calls=made.calls[:rounds])
    uses = simulate_cache(simulate(made, PRESETS["passthrough"], tokens.count), made.calls,
                          terms_of(made)).uses  # fmt: skip
    rates = price("gpt-4o")
    assert rates is not None
    read = sum(use.read for use in uses)
    return ((sum(use.prompt for use in uses) - read) * rates.input + read * rates.cache_read) / 1e9


def per_token(folder: str, ending: str) -> float:
    """Characters per o200k token of our own files."""
    texts = [file.read_text() for file in sorted((ROOT / folder).rglob(ending))]
    return sum(map(len, texts)) / sum(map(tokens.count, texts))


def estimate_error(folder: str, ending: str, chars: int) -> float:
    """Mean error of the estimate over our own files of 1,000 characters and more."""
    texts = [file.read_text() for file in sorted((ROOT / folder).rglob(ending))]
    texts = [text for text in texts if len(text) >= 1_000]
    return mean(abs(tokens.estimate([one], chars) / tokens.count(one) - 1) for one in texts)


def rule(text: str, chars: int = 4) -> float:
    """Characters per token by the rule of the estimate, without what it adds."""
    return len(text) / (tokens.estimate([text], chars) / 1.1 - 5)


def cpu_ms(work: Callable[[], object]) -> float:
    """CPU milliseconds, the best of three runs."""

    def once() -> float:
        began = time.process_time()
        work()
        return (time.process_time() - began) * 1_000

    return min(once() for _ in range(3))


def estimating_ms() -> float:
    """CPU milliseconds to estimate a history of 500 messages."""
    texts = [block.text for block in long_run(500)[0].blocks]
    return cpu_ms(lambda: tokens.estimate(texts))


def planning_ms() -> float:
    """CPU milliseconds to plan a step of 500 messages, cuts and their summaries included."""
    session = long_run(500)[0]
    policy = PRESETS["sliding-window"]
    return cpu_ms(lambda: simulate(session, policy, tokens.count)) / len(session.calls)


def summary_ms() -> float:
    """CPU milliseconds of the extractive note on 500 messages."""
    given = span(long_run(500)[0].blocks, 400, form="window")
    return cpu_ms(lambda: extractive(given))


def warned(field: str, values: Iterable[float], **given: int) -> list[float]:
    """Values of a setting of the window that the linter warns of."""

    def warns(value: float) -> bool:
        steps = (Step("window", Window(**(given | {field: value}))),)  # type: ignore[arg-type]
        found = remarks(Policy("claims", steps=steps))
        return any(one.path.endswith(f".{field}") and one.severity == "warning" for one in found)

    return [value for value in values if warns(value)]
