"""Drift: steps of an agent that mention nothing of its task or open to-do items."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from compaction.context.blocks import Block
from compaction.facts.facts import facts_of
from compaction.facts.vocabulary import Vocabulary, kind_of
from compaction.seen.todo import Todo

LONGEST = 20_000
"""Maximum code points read per block."""

_DONE = "[x]"


@dataclass(slots=True)
class Drift:
    """How many steps could be judged and how many of them drift; learned block by block.

    A step is judged if its texts or calls hold a fact, and so does a person's message or an open
    to-do item by then. It drifts if they name none of its facts: a path counts by its end, a name
    by its parts (`Vocabulary`). Exploration counts as drift too, so the share is an upper bound
    (docs/decisions.md, 67).
    """

    judged: int = 0
    adrift: int = 0
    _task: Vocabulary = field(default_factory=Vocabulary)
    _known: bool = False
    _todo: Todo = field(default_factory=Todo)
    _uses: dict[str, Block] = field(default_factory=dict)
    _calls: int = 0
    _step: tuple[str | None, int] | None = None
    _said: list[Block] = field(default_factory=list)

    def add(self, block: Block) -> None:
        """Add the next block; kind "user" is a person's message."""
        if block.role == "assistant" and block.type in ("text", "tool_use"):
            if self._step != (block.call, block.born):
                self.close()
                self._step = block.call, block.born
            self._said.append(block)
            if block.type == "tool_use" and block.tool_call is not None:
                self._uses[block.tool_call] = block
                self._calls += 1
            return
        self.close()
        if block.type == "tool_result":
            use = self._uses.pop(block.tool_call or "", None)
            if use is not None and not block.error:
                self._follow(use, block)
        elif block.kind == "user" and block.type == "text":
            self._take(block.text[:LONGEST])

    def close(self) -> None:
        """Judge the last step, once it is complete."""
        said, self._said = self._said, []
        if self._known and any(facts := [self._facts(block) for block in said]):
            self.judged += 1
            self.adrift += not any(map(self._names_any, facts))

    def _facts(self, block: Block) -> set[str]:
        whole = len(block.text) <= LONGEST
        return facts_of(block if whole else replace(block, text=block.text[:LONGEST]))

    def _names_any(self, facts: set[str]) -> bool:
        return any(self._task.names(fact, kind_of(fact)) for fact in facts)

    def _follow(self, use: Block, result: Block) -> None:
        before = self._todo.text
        self._todo.take_in(use, result, self._calls)
        if self._todo.text != before:
            lines = self._todo.text[:LONGEST].splitlines()
            self._take("\n".join(line for line in lines if _DONE not in line.lower()))

    def _take(self, text: str) -> None:
        self._task.add(text)
        self._known = self._known or self._task.anything

    @property
    def share(self) -> float | None:
        """Share of judged steps that drift; None if no step could be judged."""
        return self.adrift / self.judged if self.judged else None
