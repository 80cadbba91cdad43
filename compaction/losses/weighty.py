"""Which facts of a span matter when it is replaced, and how much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compaction.context.blocks import Block
from compaction.context.groups import failure_key
from compaction.context.stubs import KEY_ARGUMENTS
from compaction.facts.facts import COMMON, facts, facts_of, texts_by_name
from compaction.facts.noise import CONTENT, built_in, is_noise, prose
from compaction.facts.paths import DEEPEST, normal
from compaction.facts.vocabulary import LONGEST, FactKind, is_name, kind_of
from compaction.tools.failures import signature

OPEN_ERROR, CHANGED, NEEDED, SAID, CARRIED, READ, MENDED, USED = 100, 90, 80, 70, 60, 50, 40, 30
"""Weights by the reason a fact counts: the error of a call that never succeeded later; a file that
was written, edited or deleted; named in a later call's input; said by a person; in an earlier
summary; a file that was read; an error that was fixed; named in several inputs."""

WHY = {
    OPEN_ERROR: "error, open",
    CHANGED: "file changed",
    NEEDED: "named later",
    SAID: "said by a person",
    CARRIED: "in the earlier summary",
    READ: "file read",
    MENDED: "error, fixed",
    USED: "used often",
}
"""Display names of the reasons, by weight."""

ARGUMENT = 300
"""Maximum code points of an input value that names something; longer ones are content."""

OFTEN = 2
"""Minimum steps whose inputs name a fact for it to count as used."""

HOLDERS = 50
"""Maximum blocks remembered per fact."""

MOST_ERRORS = 200
"""Maximum errors that count, the newest."""

_CHANGES = frozenset({"write", "edit", "delete"})


@dataclass(slots=True)
class Weighty:
    """A fact that counts: its spelling, its weight, and the blocks that hold it, in order."""

    fact: str
    kind: FactKind
    weight: int = 0
    holders: list[Block] = field(default_factory=list)
    blocks: int = 0
    named_at: set[int] = field(default_factory=set)
    alone: bool = False
    """For a path: whether no other path that counts ends with the same name."""

    def hold(self, block: Block) -> None:
        """Add a block."""
        self.blocks += 1
        self.holders.append(block)
        if len(self.holders) > HOLDERS:
            del self.holders[0]

    def weigh(self, weight: int) -> None:
        """Add a reason to count; the highest weight wins."""
        self.weight = max(self.weight, weight)

    @property
    def common(self) -> bool:
        """Whether so many blocks hold it that it is noise."""
        return self.blocks > COMMON


def named_later(blocks: Iterable[Block]) -> dict[str, int]:
    """Return the normalized facts named in inputs of later calls, with the first step each."""
    found: dict[str, int] = {}
    for block in blocks:
        for fact in named_in(block):
            found.setdefault(normal(fact), block.born - 1)
    return found


def named_in(block: Block) -> set[str]:
    """Return the facts in a call's short input values, without content and options."""
    if block.type != "tool_use":
        return set()
    found: set[str] = set()
    for name, text in texts_by_name(block):
        names = name in KEY_ARGUMENTS or " " in text or "/" in text
        if names and name not in CONTENT and len(text) <= ARGUMENT:
            found |= facts(text)
    return found


def _said(block: Block) -> set[str]:
    """Return the facts of a person's message, except in pasted code."""
    if block.kind != "user" or block.role != "user" or block.type != "text":
        return set()
    return facts(prose(block.text))


def weighty(span: Sequence[Block], needed: Mapping[str, int]) -> list[Weighty]:
    """Return the facts of a span that count, by weight; `needed` are normalized facts.

    A long span holds thousands of facts, most of them noise in tool results, so only facts with one
    of the reasons above count. Facts in more than `COMMON` blocks, and built-in names, count only
    if a person or an earlier summary mentions them, or as files; code pasted by a person does not
    count as a mention. Every fact is listed once: names of one file with the same ending are
    merged. Linear in the span's text.
    """
    found = _BlockFacts()
    for block in span:
        found.take_in(block)
    for token, one in found.facts.items():
        if found.is_built_in(token):
            continue
        if token in needed and not one.common:
            one.weigh(NEEDED)
        if len(one.named_at) >= OFTEN and not one.common:
            one.weigh(USED)
    counted = [one for one in found.facts.values() if one.weight]
    names = Counter(_file_name(one.fact) for one in counted if one.kind == "path")
    for one in counted:
        one.alone = one.kind == "path" and names[_file_name(one.fact)] == 1
    counted += _errors(span)
    return sorted(counted, key=lambda one: (-one.weight, one.blocks, one.kind, one.fact))


def _file_name(path: str) -> str:
    return normal(path).rpartition("/")[2]


class _BlockFacts:
    """Facts of blocks by their normalized form."""

    def __init__(self) -> None:
        self.facts: dict[str, Weighty] = {}
        self._files: dict[str, str] = {}
        self._known: set[str] = set()
        self._built_in: set[str] = set()

    def is_built_in(self, token: str) -> bool:
        """Return whether a name is built into a language, by itself or with its module."""
        return token in self._built_in or bool(built_in(token))

    def take_in(self, block: Block) -> None:
        named = named_in(block)
        said = _said(block)
        for token, fact in self._tokens(facts_of(block)):
            one = self.facts.setdefault(token, Weighty(fact, kind_of(fact)))
            if not one.holders or one.holders[-1] is not block:
                one.hold(block)
            if fact in named:
                one.named_at.add(block.born)
            if fact in said:
                one.weigh(SAID)
            elif block.kind == "summary":
                one.weigh(CARRIED)
        if block.file is not None and not block.error:
            self._file(block)

    def _tokens(self, given: Iterable[str]) -> Iterator[tuple[str, str]]:
        for fact in sorted(given):
            if len(fact) > LONGEST or is_noise(fact):
                continue
            if name := built_in(fact):
                self._built_in.add(name)
            if kind_of(fact) == "identifier" and not is_name(fact):
                continue
            token = normal(fact)
            yield self._files.get(token, token), fact

    def _file(self, block: Block) -> None:
        """Record a file by its action, under all suffixes of its path."""
        assert block.file is not None
        path, action = block.file.path.replace("\\", "/"), block.file.action
        token = normal(path)
        if action == "list" or not token or len(path) > LONGEST:
            return
        token = self._files.get(token, token)
        one = self.facts.setdefault(token, Weighty(path, "path"))
        one.weigh(CHANGED if action in _CHANGES else READ)
        if not one.holders or one.holders[-1] is not block:
            one.hold(block)
        if token not in self._known:
            self._known.add(token)
            one.fact, one.kind = path, "path"
            parts = token.split("/")[-DEEPEST:]
            for at in range(1, len(parts) - 1):
                self._merge("/".join(parts[at:]), token)

    def _merge(self, ending: str, token: str) -> None:
        """Merge a name that is spelled like the end of a file's path into that file."""
        if self._files.setdefault(ending, token) != token or ending not in self.facts:
            return
        shorter, whole = self.facts.pop(ending), self.facts[token]
        whole.weigh(shorter.weight)
        whole.blocks += shorter.blocks
        whole.named_at |= shorter.named_at
        held = {block.id: block for block in [*shorter.holders, *whole.holders]}
        whole.holders = sorted(held.values(), key=lambda block: block.position)[-HOLDERS:]


def _errors(span: Iterable[Block]) -> Iterator[Weighty]:
    """Yield the last error of each failed operation, and whether it succeeded later.

    An error followed by a success on the same file is dropped as a slip in tool use.
    """
    uses = {block.tool_call: block for block in span if block.type == "tool_use"}
    last: dict[str, Weighty] = {}
    for block in span:
        use = uses.get(block.tool_call)
        if block.type != "tool_result" or use is None:
            continue
        key = failure_key(use)
        # A stub of a result does not say how the call failed.
        if block.error and block.replaces is None and (line := signature(block.text)):
            last[key] = Weighty(line, "error", OPEN_ERROR, [block], 1)
        elif not block.error and key in last:
            last[key].weight = MENDED
            if use.file is not None:
                del last[key]
    once: dict[str, Weighty] = {}
    for one in last.values():
        if one.fact not in once or once[one.fact].weight < one.weight:
            once[one.fact] = one
    yield from list(once.values())[-MOST_ERRORS:]
