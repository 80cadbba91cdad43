"""Detect new topics: whether a person's new message relates to the earlier ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from compaction.context.blocks import Block
from compaction.seen.people import is_said
from compaction.seen.todo import Todo
from compaction.topic.terms import LONGEST, count_words, terms_of

ROUNDS = 3
"""Newest rounds considered (CodeGenius)."""

OPENING = 400
"""Code points at the start of a message searched for references back (our choice)."""

CODE_WIDTH = 200
"""Maximum code points of a line of code (our choice)."""

NEW = 14
"""Points from which a message counts as a new topic (our choice, benchmarks/policies/topics.py)."""

Boundary = Literal["", "new_topic", "task_done"]
"""What ended just before this call, if detected; empty for nothing."""

_TAGGED = re.compile(r"<([A-Za-z][\w-]*)>.*?(?:</\1>|\Z)", re.DOTALL)
"""Context that programs attach to a person's message."""


_ANNOUNCED = re.compile(
    r"""\b(?:new|another|different|separate|unrelated|other|next)\s+
        (?:task|topic|question|feature|project|issue|thing|problem|request|bug|subject|ticket)\b
    |\b(?:moving\s+on|switch(?:ing)?\s+(?:gears|topics?|subjects?)|change\s+of\s+(?:topic|subject))\b
    |\bon\s+(?:a|an)\s+(?:different|unrelated|other)\s+(?:note|topic|subject)\b
    |\b(?:forget|leave)\s+(?:about\s+)?(?:that|this|it)\b
    |\b(?:neue|andere|nächste)s?\s+(?:aufgabe|thema|frage)\b | \betwas\s+(?:ganz\s+)?anderes\b
    |\b(?:nouvelle|autre|prochaine)\s+(?:tâche|question|chose|demande)\b | \bautre\s+sujet\b
    |\b(?:nueva|otra|siguiente)\s+(?:tarea|pregunta|cosa)\b | \botro\s+tema\b
    |新的?(?:任务|需求|话题|问题|功能|项目)|下一个(?:任务|问题|需求|话题)|另一个?(?:任务|问题|需求|话题|件事)
    |换一?个(?:话题|任务|问题)|题外话|顺便问
    |別の(?:件|話|タスク|質問|こと)|次の(?:タスク|質問)|新しい(?:タスク|機能|質問)|ところで""",
    re.VERBOSE | re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"^\W*(?:(?:yes|yeah|yep|no|nope|ok|okay|sure|also|and|but|so|still|again|instead|actually|hmm"
    r"|wait|why|sorry|continue|go|proceed|then|try|push|commit|ja|nein|oui|non|sí|si|not|once)\b"
    r"|是|好|不|对|继续|还|也|再|那|这|为什么|先|但|はい|いいえ|続|でも)",
    re.IGNORECASE,
)
_PASTED = re.compile(
    r"^[^\S\n]*(?:traceback|\w*error\b|\w*exception\b|---+ ?fail|===+|fail\b|panic\b|[➜$>%✗│─+]"
    r"|\d+\s*[|│])"
    r"|\b(?:severity|stack\s?trace|exit (?:code|status))\b|:\d+:\d*"
    r"|\bat (?:(?!\bat ).)+:\d+\)?$|```|\"\"\"",
    re.IGNORECASE | re.MULTILINE,
)
"""Pasted output, code and review comments, which usually concern the current work."""
_CODE = re.compile(
    r"\s*(?:[\w.\[\]]+\s*(?::=|\+=|=)\s*\S|(?:var|let|const)\s+\w+\s*[=:]"
    r"|var\s+\w+\s+[\w.\[\]]+\s*$|(?:func|fn|def|class)\s+\w+\s*[({:]"
    r"|[\w.]+\([^()]{0,120}\)?\s*+[,;{]?+\s*+$|.*[;{}]\s*$)"
)
"""A line of code outside a fence; prose rarely has two of them."""
_BACK = re.compile(
    r"\b(?:it|its|that|this|these|those|they|them|same|above|previous|earlier|your|again|still"
    r"|also|both|instead|else)\b|[这那它其]|上面|刚才|之前|前面|以上|同样|それ|これ|その|この"
    r"|\b(?:das|dies(?:e[rsn]?)?|es|dabei|cela|ça|celui|eso|esto|lo)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Round:
    """A person's message and the model's last text in answer; empty if there was none."""

    said: str
    answered: str = ""


@dataclass(frozen=True, slots=True)
class Topic:
    """A person's message to judge, and the last rounds before it, oldest first."""

    rounds: tuple[Round, ...]
    message: str


Judge = Callable[[Topic], bool | None]
"""Returns whether a message starts a new topic, or None while the judgment is pending."""


@dataclass(frozen=True, slots=True)
class Signs:
    """What a message has in common with the rounds before it.

    `unseen` and `seen` count its distinctive words (two characters of Chinese or Japanese count
    half a word); `strange` and `known` its names (identifiers, paths, long numbers). `announced`:
    it announces a change of topic; `goes_on`: its first word refers back; `pasted`: it contains
    output or code; `back` counts references back.
    """

    unseen: int
    seen: int
    strange: int
    known: int
    announced: bool
    goes_on: bool
    pasted: bool
    back: int

    @property
    def share(self) -> int:
        """Percent of the words and names that are seen; 0 if there are none."""
        held = self.seen + self.known
        every = held + self.unseen + self.strange
        return 100 * held // every if every else 0

    @property
    def points(self) -> int:
        """Evidence for a new topic; weights are ours, fitted on half of the recorded sessions."""
        points = min(self.unseen, 60) + min(self.strange, 3)
        points -= min(self.share, 50) // 5 + 2 * min(self.back, 4)
        points += 7 if not self.share else 0
        points -= 40 if self.pasted else 0
        if self.goes_on:
            return points - 30
        return points + (20 if self.announced else 0)


def is_new(rounds: Sequence[Round], message: str) -> bool:
    """Return whether a message has nothing to do with the last rounds.

    Judged without a model on the last three rounds, each a person's text and the model's last one;
    CodeGenius asks a model instead. Cautious: a short, self-contained message counts as going on. A
    first message is not a new topic.
    """
    return bool(rounds) and signs(rounds, message).points >= NEW


def signs(rounds: Sequence[Round], message: str) -> Signs:
    """Compare a message with the last rounds."""
    message = _TAGGED.sub(" ", message[:LONGEST]).strip()
    words, names = terms_of(text for one in rounds[-ROUNDS:] for text in (one.said, one.answered))
    own_words, own_names = terms_of([message])
    opening = message[:OPENING]
    return Signs(
        unseen=count_words(own_words - words),
        seen=count_words(own_words & words),
        strange=len(own_names - names),
        known=len(own_names & names),
        announced=bool(_ANNOUNCED.search(opening)),
        goes_on=bool(_GOES_ON.search(opening)),
        pasted=bool(_PASTED.search(message)) or _holds_code(message),
        back=len(_BACK.findall(opening)),
    )


def _holds_code(message: str) -> bool:
    lines = (line for line in message.splitlines() if len(line) <= CODE_WIDTH)
    return sum(_CODE.match(line) is not None for line in lines) > 1


@dataclass(slots=True)
class Rounds:
    """The last rounds of a session, learned block by block, in constant work per block.

    `opened` is the position of the newest message by a person, None before the first; `boundary`
    says what ended just before it.
    """

    past: list[Round] = field(default_factory=list)
    opened: int | None = None
    _born: int = 0
    _message: int = -1
    _said: str = ""
    _answered: str = ""
    _todo: Todo = field(default_factory=Todo)
    _listed: bool = False
    _finished: bool = False
    _boundary: Boundary | None = None

    def add(self, block: Block, use: Block | None) -> None:
        """Add the next original; `use` is the call that a result answers."""
        if block.type == "text" and block.role == "user" and block.kind == "user":
            self._hear(block)
        elif block.type == "text" and block.role == "assistant" and block.text.strip():
            self._answered = block.text[:LONGEST]
        elif block.type == "tool_result" and use is not None and not block.error:
            before = self._todo.text
            self._todo.take_in(use, block, 0)
            self._listed |= self._todo.text != before

    def _hear(self, block: Block) -> None:
        self._boundary = None
        if block.message == self._message:
            self._said = f"{self._said}\n{block.text[:LONGEST]}"[:LONGEST]
            return
        if not block.text.strip() or not is_said(block.text):
            return
        if self.opened is not None:
            self.past = [*self.past, Round(self._said, self._answered)][-ROUNDS:]
        items = [line for line in self._todo.text.splitlines() if line.lstrip().startswith("- [")]
        done = bool(items) and not any(line.lstrip().startswith("- [ ]") for line in items)
        self._finished, self._listed = self._listed and done, False
        self._message, self.opened, self._born = block.message, block.position, block.born
        self._said, self._answered = block.text[:LONGEST], ""

    def unanswered(self, step: int) -> bool:
        """Return whether no model had answered the newest message of a person before this step."""
        return self.opened is not None and self._born >= step

    @property
    def topic(self) -> Topic | None:
        """The newest message to judge; None if nothing precedes it."""
        return Topic(tuple(self.past), self._said) if self.past else None

    @property
    def finished(self) -> bool:
        """Whether the to-do list was completed before the newest message."""
        return self._finished

    def boundary(self, step: int) -> Boundary:
        """Return what ended before the newest message: the topic changed, or the to-do list was
        completed.

        Empty once a model has answered the message before this step. The list must have been
        completed since the message before, with nothing open.
        """
        if not self.unanswered(step):
            return ""
        if self._boundary is None:
            over: Boundary = "task_done" if self._finished else ""
            self._boundary = "new_topic" if is_new(self.past, self._said) else over
        return self._boundary
