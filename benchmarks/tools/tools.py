"""Tools on real sessions: which comes next, what definitions cost, and how sessions drift.

    CONTEXTLAB_CORPUS=/path/to/logs python -m benchmarks.tools.tools

Next tools are guessed for each session from all others that do not lie in the same folder, as
pages do it, and from frequency alone. Prints numbers only, by format; writes nothing of the logs.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.policies.recall import session_of
from compaction import tokens
from compaction.context.blocks import Block
from compaction.context.session import Session
from compaction.context.wire import decode, encode
from compaction.tools.drift import Drift
from compaction.tools.habits import OWN, WITHIN, Habits, habits_of, likely
from compaction.tools.schema_check import faults, schemas_of
from sessions.importers import NotALog, parse

Steps = list[list[str]]
Foretell = Callable[[Steps], Collection[str]]

ENOUGH, NEWEST = 5, (5, 20, 50)
"""Sessions before the first that starts from habits, and the most that it learns from."""

JUDGED = 5
"""Steps that must be judged before a session's drift counts."""


def logs(folder: Path) -> Iterator[tuple[str, str, Session]]:
    """Yield format, folder and values of every session, once."""
    seen: set[tuple[str, str]] = set()
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        try:
            log = parse(path.read_bytes(), path.name)
        except NotALog:
            continue
        for found in log.sessions:
            session = session_of(found, tokens.count)
            if session is not None and (log.format, found.external_id) not in seen:
                seen.add((log.format, found.external_id))
                yield log.format, path.parent.name, session


def steps_of(session: Session) -> Steps:
    """Return the tools of each step that used any."""
    found: dict[int, list[str]] = defaultdict(list)
    for block in session.blocks:
        if block.type == "tool_use" and block.tool:
            found[block.born].append(block.tool)
    return [found[born] for born in sorted(found)]


def hits(steps: Steps, predict: Foretell) -> tuple[int, int]:
    """Count the distinct tools after the first step, and those guessed."""
    found = wanted = 0
    for number, now in enumerate(steps[1:], 1):
        guess = predict(steps[:number])
        found += len(set(now).intersection(guess))
        wanted += len(set(now))
    return found, wanted


def of_sessions(others: Habits) -> Foretell:
    """Predict the three likeliest tools, from other sessions and this one so far."""
    both, done = Habits(), 0
    both.add(others)

    def predict(before: Steps) -> Collection[str]:
        nonlocal done
        for place in range(done, len(before)):
            for _ in range(OWN):
                both.learn(before[max(0, place - WITHIN) : place], before[place])
        done = len(before)
        return [one.tool for one in likely(both, before)]

    return predict


def frequent(others: Habits) -> Foretell:
    """Predict the three most frequent tools of other sessions."""
    best = [tool for tool, _ in others.uses.most_common(3)]
    return lambda _: best


def frequent_here(_: Habits) -> Foretell:
    """Predict the three most frequent tools of this session so far."""
    return lambda before: [
        tool for tool, _ in Counter(t for step in before for t in set(step)).most_common(3)
    ]


def next_tools(sessions: Sequence[tuple[str, Steps]]) -> None:
    """Return hit rates of three predictors, over sessions with others in other folders."""
    alone = [habits_of(steps) for _, steps in sessions]
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for folder, steps in sessions:
        others = Habits()
        for (other, _), habits in zip(sessions, alone, strict=True):
            if other != folder:
                others.add(habits)
        for rule in (of_sessions, frequent, frequent_here) if others.uses else ():
            for place, count in enumerate(hits(steps, rule(others))):
                sums[rule.__name__][place] += count
    for name, (found, wanted) in sums.items():
        print(f"  next tool among three, {name}: {found / max(wanted, 1):.3f} of {wanted}")


def definitions(sessions: Sequence[Session]) -> None:
    """Return the tokens of tool definitions, and those of unused ones."""
    whole = used = checked = broken = known = most = 0
    for session in sessions:
        listed = [tool for b in session.blocks if b.type == "tools" for tool in _tools(b)]
        if not listed:
            continue
        known += 1
        most = max(most, len(listed))
        called = {block.tool for block in session.blocks if block.type == "tool_use"}
        schemas = schemas_of(listed)
        for tool in listed:
            size = tokens.count(encode({"tool": tool}).decode("utf-8", "replace"))
            whole += size
            used += size * bool(called.intersection(schemas_of([tool])))
        for block in session.blocks:
            if block.type == "tool_use" and block.tool in schemas:
                checked += 1
                broken += bool(faults(schemas[block.tool], decode(block.text.encode())))
    if known:
        print(
            f"  definitions known in {known}, {most} tools at most: {used} of {whole} tokens used"
        )
        print(f"  {broken} of {checked} calls break their schema")


def _tools(block: Block) -> list[object]:
    found: object = decode(b'{"tools":' + block.text.encode() + b"}")["tools"]
    return found if isinstance(found, list) else []


def drift(sessions: Sequence[Session]) -> None:
    """Show the distribution of drift over sessions, and over the thirds of each."""
    shares, thirds = [], ([], [], [])  # type: ignore[var-annotated]
    for session in sessions:
        made, marks = Drift(), list[tuple[int, int]]()
        for block in session.blocks:
            said = block.role == "user" and block.type == "text" and block.kind == "other"
            made.add(replace(block, kind="user") if said else block)
            marks.append((made.judged, made.adrift))
        made.close()
        if made.judged < JUDGED or made.share is None:
            continue
        shares.append(made.share)
        ends = [0, made.judged // 3, 2 * made.judged // 3, made.judged]
        by = dict([*marks, (made.judged, made.adrift)])
        for third, (a, b) in zip(thirds, zip(ends, ends[1:], strict=False), strict=True):
            if b > a:
                third.append((by.get(b, 0) - by.get(a, 0)) / (b - a))
    if len(shares) > 1:
        tenths = statistics.quantiles(shares, n=10, method="inclusive")
        parts = ", ".join(f"{statistics.mean(third):.2f}" for third in thirds)
        print(f"  drift of {len(shares)} of {len(sessions)} sessions: median {tenths[4]:.2f}, "
              f"one in ten below {tenths[0]:.2f}, one above {tenths[8]:.2f}; "
              f"mean by thirds {parts}")  # fmt: skip


def left_out(sessions: Sequence[Session]) -> None:
    """Print how many of the tools that sessions used `tools: habits` would have left out, by the
    number of sessions before from which it learns."""
    timed = [(one.calls[0].at, one) for one in sessions if one.calls and one.calls[0].at]
    ordered = [one for _, one in sorted(timed, key=lambda pair: pair[0] or 0)]
    uses = [Counter(tool for step in steps_of(one) for tool in step) for one in ordered]
    uses = [one for one in uses if one]
    for newest in NEWEST:
        used = out = calls = lost = touched = 0
        for place in range(ENOUGH, len(uses)):
            known = set().union(*uses[max(0, place - newest) : place])
            now = uses[place]
            missing = set(now) - known
            used, out = used + len(now), out + len(missing)
            calls, lost = calls + now.total(), lost + sum(now[tool] for tool in missing)
            touched += bool(missing)
        if used:
            print(f"  habits of the newest {newest}: {out} of {used} tools left out, {lost} of "
                  f"{calls} uses, in {touched} of {len(uses) - ENOUGH} sessions")  # fmt: skip


def main() -> None:
    """Print all figures, by format."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=os.environ.get("CONTEXTLAB_CORPUS"))
    folder = parser.parse_args().folder
    if not folder:
        parser.error("name a folder of logs, or set CONTEXTLAB_CORPUS")
    by_format: dict[str, list[tuple[str, Session]]] = defaultdict(list)
    for form, place, session in logs(Path(folder)):
        by_format[form].append((place, session))
    for form, found in sorted(by_format.items()):
        print(f"{form}: {len(found)} sessions")
        next_tools([(place, steps) for place, one in found if (steps := steps_of(one))])
        definitions([session for _, session in found])
        left_out([session for _, session in found])
        drift([session for _, session in found])


if __name__ == "__main__":
    main()
