"""Needed-later recall of plain policies on real sessions: the table in docs/record/cache.md.

    CONTEXTLAB_CORPUS=/path/to/logs python -m benchmarks.policies.recall
    python -m benchmarks.policies.recall /path/to/logs --json figures.json

Reads every Claude Code log below the folder, takes sessions of 30 steps or more and over 30,000
tokens (o200k, the log's own text without summaries), and prints for each policy: tokens sent over
all steps, needs that were in context, in context or named, lost, and the prompt cost against
the same sessions as recorded (hidden prompt as inferred, prices of the session's model, recorded
pace, breakpoints at system, frontier, previous end and end). Writes nothing of the logs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.policies.plain import everything, offload, window
from compaction import tokens
from compaction.cache.simulator import TTL
from compaction.context import wire
from compaction.context.blocks import Block, FileRef
from compaction.context.session import Call, Session
from compaction.facts.facts import FactIndex
from compaction.facts.recall import Recall, recall
from compaction.policies.policy import Policy, Step
from compaction.policies.presets import PRESETS
from compaction.recitation.recite import Recite
from compaction.seen.calls import file_of
from compaction.simulation.run import CacheRun, simulate_cache, terms_of
from compaction.simulation.simulate import Run, simulate
from compaction.strategies.dedupe import Dedupe
from compaction.strategies.externalise import Externalise
from compaction.strategies.replace import Replace
from compaction.strategies.shard import Shard
from sessions.importers import NotALog, parse, records

Count = Callable[[str], int]

FIRST = PRESETS["offload-first"].steps


def managed(policy: Policy) -> Callable[[Session, Count], Run]:
    """Run a policy as it is."""
    return lambda session, count: simulate(session, policy, count)


RECITATION = PRESETS["recitation"]
RECITING = {
    "recitation alone, no layer 3": replace(RECITATION, steps=()),
    "recitation, nothing recited": replace(RECITATION, recite=None),
    "recitation, readings cut too": replace(
        RECITATION, steps=(Step("externalise", Externalise()), *RECITATION.steps[1:])
    ),
    "recitation": RECITATION,
    "recitation with a dashboard": replace(RECITATION, recite=Recite(tokens=1_500, dashboard=500)),
    "dashboard only": Policy("measured", recite=Recite(600, 0, 0, dashboard=600)),
    "seven-principles": PRESETS["seven-principles"],
}


def engine(*steps: Step) -> Callable[[Session, Count], Run]:
    """Build a policy with the reserve of `offload-first`."""
    policy = Policy("measured", steps=steps, reserve=PRESETS["offload-first"].reserve)
    return lambda session, count: simulate(session, policy, count)


POLICIES: dict[str, Callable[[Session, Count], Run]] = {
    "everything": everything,
    **{f"window of {n} blocks": window(n) for n in (20, 40, 80)},
    **{f"offload after {n} steps, plain stub": offload(n, names=0) for n in (5, 10, 20)},
    **{f"offload after {n} steps, 30 rarest facts": offload(n, names=30) for n in (5, 10, 20)},
    "dedupe": engine(Step("dedupe", Dedupe())),
    "externalise": engine(Step("externalise", Externalise())),
    "replace": engine(Step("replace", Replace())),
    "replace, batches of 5": engine(Step("replace", Replace(batch=5))),
    "shard over 5,000": engine(Step("shard", Shard(over=5_000))),
    "offload-first, no dedupe": engine(*FIRST[1:]),
    "offload-first, dedupe at any age": engine(Step("dedupe", Dedupe()), *FIRST[1:]),
    "offload-first": engine(*FIRST),
    **{name: managed(policy) for name, policy in RECITING.items()},
}


Made = tuple[wire.BlockType, str, str | None, str | None, int, bool, FileRef | None]
"""A block's form, text, tool, tool call, tokens, error and file."""


def session_of(found: records.Session, count: Count) -> Session | None:
    """Return the values of a session of a log, numbered as in the store; None without a call."""
    steps: dict[str, int] = {}
    known: dict[str, records.Call] = {}
    blocks: list[Block] = []
    tools: dict[str, tuple[str, FileRef | None]] = {}
    turn = 0
    for number, record in enumerate(found.records):
        if isinstance(record, records.Call):
            steps.setdefault(record.call, len(steps) + 1)
            _follow(record, known)
        elif isinstance(record, records.Message) and record.kind != "summary":
            turn += record.human
            born = steps.setdefault(record.call, len(steps) + 1) if record.call else len(steps)
            for made in _blocks(record, tools, count):
                at = Place(len(blocks), number, born + 1, turn)
                blocks.append(_block(record, at, made))
    # Steps are numbered when first seen, so a call that is only named later has its number too.
    calls = tuple(
        Call(step, known[call].model, known[call].at, known[call].usage)
        if call in known
        else Call(step, found.model)
        for call, step in sorted(steps.items(), key=lambda item: item[1])
    )
    if not calls:
        return None
    model = next((call.model for call in calls if call.model), found.model)
    hidden = _hidden(calls, blocks)
    blocks.sort(key=lambda block: (block.born, block.position))
    return Session(tuple(blocks), calls, model, found.window or 200_000, hidden)


def _follow(record: records.Call, known: dict[str, records.Call]) -> None:
    """Keep what earlier records of a call said and this one does not."""
    before = known.get(record.call)
    known[record.call] = record
    if before is not None:
        record.usage = record.usage or before.usage
        record.at = before.at if before.at is not None else record.at


def _hidden(calls: Sequence[Call], blocks: Iterable[Block]) -> int:
    """Return the prompt tokens of the first measured call that no block accounts for."""
    first = next((call for call in calls if call.usage is not None), None)
    if first is None or first.usage is None:
        return 0
    visible = sum(block.tokens for block in blocks if block.born <= first.step)
    return max(first.usage.prompt - visible, 0)


class Place(NamedTuple):
    position: int
    message: int
    born: int
    turn: int


def _block(record: records.Message, at: Place, made: Made) -> Block:
    form, text, tool, pair, size, error, file = made
    read = form == "tool_result" and file is not None and file.action == "read"
    return Block(
        id=f"b{at.position}",
        position=at.position,
        message=at.message,
        born=at.born,
        turn=at.turn,
        role=record.role,
        type=form,
        kind="file" if read else record.kind or "other",
        tokens=size,
        chars=len(text),
        sha=f"{at.position:08x}",
        text=text,
        call=record.call,
        tool_call=pair,
        tool=tool,
        file=file,
        error=error,
    )


def _blocks(
    record: records.Message, tools: dict[str, tuple[str, FileRef | None]], count: Count
) -> Iterator[Made]:
    for block in record.blocks:
        form, text = wire.type_of(block), wire.text_of(block)
        tool = pair = file = None
        if form == "tool_use":
            tool, pair = str(block.get("name")), str(block.get("id"))
            file = file_of(tool, block.get("input"))
            tools[pair] = tool, file
        elif form == "tool_result":
            pair = str(block.get("tool_use_id"))
            tool, file = tools.get(pair, (None, None))
        size = count(f"{tool} {text}" if form == "tool_use" else text)
        yield form, text, tool, pair, size, bool(block.get("is_error")), file


def long_sessions(folder: Path, count: Count) -> Iterator[tuple[str, Session]]:
    """Yield Claude Code sessions with at least 30 steps and 30,000 tokens."""
    seen: set[str] = set()
    for path in sorted(folder.rglob("*.jsonl")):
        try:
            log = parse(path.read_bytes(), path.name)
        except NotALog:
            continue
        for found in log.sessions if log.format.startswith("claude-code") else ():
            session = session_of(found, count)
            # A resumed session repeats the log it grew from under the same id.
            if session is None or found.external_id in seen or len(session.calls) < 30:
                continue
            if sum(block.tokens for block in session.blocks) > 30_000:
                seen.add(found.external_id)
                yield found.external_id, session


class Row:
    """Sums of one policy over all sessions."""

    def __init__(self) -> None:
        self.sent = self.whole = self.needs = 0
        self.cost = self.alone = 0
        self.states = [0.0, 0.0, 0.0, 0.0]

    def add(self, run: Run, whole: int, judged: Recall, cache: CacheRun) -> None:
        self.sent += run.sent
        self.whole += whole
        self.needs += judged.needs
        self.cost += cache.prompt_cost or 0
        self.alone += cache.recorded_prompt_cost or 0
        shares = (judged.in_context, judged.named, judged.retrievable, judged.lost)
        self.states = [a + b * judged.needs for a, b in zip(self.states, shares, strict=True)]

    def figures(self) -> dict[str, float]:
        in_context, named, _, lost = (state / max(self.needs, 1) for state in self.states)
        return {
            "tokens_sent": self.sent / max(self.whole, 1),
            "in_context": in_context,
            "in_context_or_named": in_context + named,
            "lost": lost,
            "prompt_cost": self.cost / self.alone if self.alone else 0.0,
            "needs": self.needs,
        }


def measure(
    folder: Path, ttl: TTL | None, say: Callable[[str], object]
) -> dict[str, dict[str, float]]:
    """Measure every policy over all long sessions of a folder."""
    rows = {name: Row() for name in POLICIES}
    number = 0
    for name, session in long_sessions(folder, tokens.count):
        number += 1
        index = FactIndex(session.blocks)
        terms = terms_of(session, ttl)
        whole = everything(session, tokens.count).sent
        say(f"{name[:8]} {session.model}: {len(session.calls)} steps, hidden {session.hidden}\n")
        for policy, make in POLICIES.items():
            run = make(session, tokens.count)
            cache = simulate_cache(run, session.calls, terms)
            rows[policy].add(run, whole, recall(session, run, index), cache)
    say(f"{number} sessions\n")
    return {policy: row.figures() for policy, row in rows.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", default=os.environ.get("CONTEXTLAB_CORPUS"))
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    parser.add_argument(
        "--ttl", choices=["5m", "1h"], help="of all cache entries; else as each session's own"
    )
    given = parser.parse_args()
    if not given.folder:
        parser.error("name a folder, or set CONTEXTLAB_CORPUS")
    figures = measure(Path(given.folder), given.ttl, sys.stderr.write)
    out = sys.stdout.write
    out(
        "| policy | tokens sent | in context | in context or named | lost | prompt cost | needs |\n"
    )
    out("| --- | --- | --- | --- | --- | --- | --- |\n")
    for policy, row in figures.items():
        out(
            f"| {policy} | {row['tokens_sent']:.1%} | {row['in_context']:.3f} "
            f"| {row['in_context_or_named']:.3f} | {row['lost']:.3f} "
            f"| {row['prompt_cost']:.2f} | {row['needs']:.0f} |\n"
        )
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
