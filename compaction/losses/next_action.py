"""Whether a model asked again at a recorded step acts as the agent did."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.context.blocks import Block
from compaction.context.stubs import OFFLOADED

_IMITATION = f"[{OFFLOADED}:"


@dataclass(frozen=True, slots=True)
class Action:
    """What a response does: its tool calls as (name, input), and its text."""

    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    text: str = ""

    @property
    def imitates(self) -> bool:
        """Whether it writes a stub itself, as if that were content."""
        return _IMITATION in self.text or any(
            _IMITATION in json.dumps(given, ensure_ascii=False) for _, given in self.calls
        )


@dataclass(frozen=True, slots=True)
class ActionMatch:
    """Whether two actions use the same tool, or none, and the share of equal arguments (0 with
    another tool; of several calls the best pair)."""

    tool: bool
    arguments: float


def actions(blocks: Iterable[Block]) -> dict[int, Action]:
    """Return what the recorded agent did, by step; without steps whose output the log lacks."""
    found: dict[int, list[Block]] = {}
    for one in blocks:
        if one.role == "assistant":
            found.setdefault(one.born - 1, []).append(one)
    return {step: _action(of) for step, of in found.items()}


def _action(of: Sequence[Block]) -> Action:
    calls = tuple((one.tool or "", _given(one)) for one in of if one.type == "tool_use")
    return Action(calls, "\n".join(one.text for one in of if one.type == "text"))


def _given(use: Block) -> Mapping[str, Any]:
    try:
        found = json.loads(use.text)
    except (ValueError, RecursionError):
        found = use.text
    return found if isinstance(found, dict) else {"input": found}


def match(recorded: Action, answered: Action) -> ActionMatch:
    """Compare an answer with what the agent did."""
    if not recorded.calls or not answered.calls:
        same = not recorded.calls and not answered.calls
        return ActionMatch(same, float(same))
    shares = [
        _equal(theirs, mine)
        for name, theirs in recorded.calls
        for called, mine in answered.calls
        if name == called
    ]
    return ActionMatch(bool(shares), max(shares, default=0.0))


def _equal(theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> float:
    names = theirs.keys() | mine.keys()
    if not names:
        return 1.0
    return sum(_plain(theirs.get(one)) == _plain(mine.get(one)) for one in names) / len(names)


def _plain(value: Any) -> str:
    """The value as text, without differences of white space alone."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return " ".join(text.split())


def spaced(steps: Sequence[int], most: int) -> list[int]:
    """Return at most so many of some steps, evenly spaced."""
    if len(steps) <= most:
        return list(steps)
    return [steps[(2 * place + 1) * len(steps) // (2 * most)] for place in range(most)]
