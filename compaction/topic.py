"""New topics: whether what a person just wrote has to do with what went before."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from compaction.context import Block
from compaction.recitation.todo import Todo

ROUNDS = 3
"""Rounds that are looked at, the newest (CodeGenius)."""

NOT_SAID = (
    "<task-notification", "[Request interrupted", "<command-", "<local-command", "Caveat:",
    "<system-reminder", "<bash-", "This session is being continued",
)  # fmt: skip
"""How texts begin that programs write in a person's name."""

_COMMAND = re.compile(r"\s*/[\w:-]+\s*\Z")
"""A bare command to the program, as `/mode`."""

LONGEST = 6_000
"""Code points of a text that are looked at, from its beginning (ours)."""

OPENING = 400
"""Code points at the beginning of a message in which words tie it to what was (ours)."""

CODE_WIDTH = 200
"""Code points of a line above which it is no line of code (ours)."""

NEW = 14
"""Points from which a message is taken to begin something new (ours, benchmarks/topics.py)."""

Boundary = Literal["", "new_topic", "task_done"]
"""What ended just before this call, as far as that shows; empty for nothing."""

_IDENTIFIER = re.compile(r"[A-Za-z_][\w./:@-]{3,}[\w]")
_TAGGED = re.compile(r"<([A-Za-z][\w-]*)>.*?(?:</\1>|\Z)", re.DOTALL)
"""What programs attach to a person's words."""
_WORD = re.compile(r"[^\W\d_]{3,60}")
_NUMBER = re.compile(r"(?<![\w.])#?\d{3,}(?![\w.])")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PARTED = re.compile(r"[/_.:@]|[a-z][A-Z]")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")
_STEM = 6

_COMMON = frozenset(
    re.findall(
        r"\w+",
        """about above after again all also and any are because been before being below both but can
    cannot could did does doing done down each few file files for from further get had has have
    here how into its just let like look make more most need new nor not now off once one only
    other our out over own please run same see should some such sure than thanks that the their
    them then there these they this those through too two under until use used using very want was
    way well were what when where which while who why will with work would yes you your
    add code change check create fix help implement show tell test tests update write
    aber als auch auf bei bin bitte das dass dem den der des die ein eine einen für hat ich ist
    kann mich mir mit nach nicht noch oder sich sie sind soll und von war was wenn wie wir
    avec ces cette dans des donc elle est les mais mon nous par pas peux plus pour que qui sur une
    vous como con del ella esta este las los más para pero por porque quiero sus una
    """,
    )
)
"""Words that tell no topic from another, in the languages that are asked for most."""

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
    r"^\s*(?:traceback|\w*error\b|\w*exception\b|---+ ?fail|===+|fail\b|panic\b|[➜$>%✗│─+]"
    r"|\d+\s*[|│])"
    r"|\b(?:severity|stack\s?trace|exit (?:code|status))\b|:\d+:\d*|\bat .+:\d+\)?$|```|\"\"\"",
    re.IGNORECASE | re.MULTILINE,
)
"""Output, code and remarks of others that somebody hands on: they come of what is being done."""
_CODE = re.compile(
    r"\s*(?:[\w.\[\]]+\s*(?::=|\+=|=)\s*\S|(?:var|let|const)\s+\w+\s*[=:]"
    r"|var\s+\w+\s+[\w.\[\]]+\s*$|(?:func|fn|def|class)\s+\w+\s*[({:]"
    r"|[\w.]+\([^()]{0,120}\)?\s*[,;{]?\s*$|.*[;{}]\s*$)"
)
"""A line of code without a fence around it; two of them are no accident of prose."""
_BACK = re.compile(
    r"\b(?:it|its|that|this|these|those|they|them|same|above|previous|earlier|your|again|still"
    r"|also|both|instead|else)\b|[这那它其]|上面|刚才|之前|前面|以上|同样|それ|これ|その|この"
    r"|\b(?:das|dies(?:e[rsn]?)?|es|dabei|cela|ça|celui|eso|esto|lo)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Round:
    """What a person wrote, and the last text that the model answered; empty where it gave none."""

    said: str
    answered: str = ""


@dataclass(frozen=True, slots=True)
class Topic:
    """What is judged: whether `message`, which a person wrote, begins something new after the last
    rounds, oldest first."""

    rounds: tuple[Round, ...]
    message: str


Judge = Callable[[Topic], bool | None]
"""Whether a message begins something new, or None while somebody is thinking about that."""


@dataclass(frozen=True, slots=True)
class Signs:
    """What a message has in common with the rounds before it.

    `unseen` and `seen` count its distinctive words, two letters of Chinese or Japanese making half
    of one; `strange` and `known` its names (identifiers, paths, long numbers). `announced` says
    that a change of topic is, `goes_on` that its first word ties it to what was, `pasted` that it
    holds output or code, `back` counts references back.
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
        """Percent of the words and names that are seen; 0 of none."""
        held = self.seen + self.known
        every = held + self.unseen + self.strange
        return 100 * held // every if every else 0

    @property
    def points(self) -> int:
        """How much speaks for a new topic; weights chosen on real sessions (docs/strategies.md)."""
        points = min(self.unseen, 60) + min(self.strange, 3)
        points -= min(self.share, 50) // 5 + 2 * min(self.back, 4)
        points += 7 if not self.share else 0
        points -= 40 if self.pasted else 0
        if self.goes_on:
            return points - 30
        return points + (20 if self.announced else 0)


def is_new(rounds: Sequence[Round], message: str) -> bool:
    """Whether a message begins something that has nothing to do with the last rounds.

    Judged without a model on the last three rounds, each a person's text and the model's last one:
    CodeGenius has a model judge the same. Cautious: what is short and self-contained goes on. A
    first message begins nothing new.
    """
    return bool(rounds) and signs(rounds, message).points >= NEW


def is_said(text: str) -> bool:
    """Whether a person says this to the agent: no text of a program, and no bare command to it."""
    return not text.lstrip().startswith(NOT_SAID) and _COMMAND.match(text) is None


def signs(rounds: Sequence[Round], message: str) -> Signs:
    """What tells a new topic from one that goes on, in the last rounds and the message alone."""
    message = _TAGGED.sub(" ", message[:LONGEST]).strip()
    words, names = _terms(text for one in rounds[-ROUNDS:] for text in (one.said, one.answered))
    own_words, own_names = _terms([message])
    opening = message[:OPENING]
    return Signs(
        unseen=_count(own_words - words),
        seen=_count(own_words & words),
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


def _count(words: set[str]) -> int:
    pairs = sum(bool(_UNSPACED.match(word)) for word in words)
    return len(words) - pairs + pairs // 2


def _terms(texts: Iterable[str]) -> tuple[set[str], set[str]]:
    """The distinctive words of texts by their stems, and the names."""
    words: set[str] = set()
    names: set[str] = set()
    for text in texts:
        told, named = _terms_of(text[:LONGEST])
        words |= told
        names |= named
    return words, names


@lru_cache(maxsize=64)
def _terms_of(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The same of one text, which stands in up to four judgements of a session."""
    found = {one for one in _IDENTIFIER.findall(text) if _PARTED.search(one)}
    names = {one.rsplit("/", 1)[-1].casefold() for one in found}
    names.update(number.lstrip("#") for number in _NUMBER.findall(text))
    runs = _UNSPACED.findall(text)
    spaced = {one for one in _WORD.findall(_HUMP.sub(" ", text)) if not _UNSPACED.search(one)}
    words = {one[:_STEM] for one in map(str.casefold, spaced) if one not in _COMMON}
    words.update(run[place : place + 2] for run in runs for place in range(len(run) - 1))
    return frozenset(words), frozenset(names)


@dataclass(slots=True)
class Rounds:
    """The last rounds of a session, learned block by block, in work that does not grow with it.

    `opened` is the position of the newest message that a person wrote, None before the first;
    `boundary` says what ended just before it.
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
        """Take in the next original; `use` is the call that a result answers."""
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
        """Whether no model had answered the newest message of a person before this step."""
        return self.opened is not None and self._born >= step

    @property
    def topic(self) -> Topic | None:
        """What there is to judge of the newest message; None where nothing was before it."""
        return Topic(tuple(self.past), self._said) if self.past else None

    @property
    def finished(self) -> bool:
        """Whether the todo list was worked off before the newest message."""
        return self._finished

    def boundary(self, step: int) -> Boundary:
        """What ended before the newest message: its topic is new, or the todo list was worked off.

        Empty once a model has answered it before this step. The list has to be finished since the
        message before, with nothing open.
        """
        if not self.unanswered(step):
            return ""
        if self._boundary is None:
            over: Boundary = "task_done" if self._finished else ""
            self._boundary = "new_topic" if is_new(self.past, self._said) else over
        return self._boundary
