"""How many tokens a text has: counted where the vocabulary is known, scaled or estimated else."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from compaction.context import Block
from compaction.session import Session

Basis = Literal["exact", "calibrated", "estimated"]
"""`exact`: the model's own vocabulary; `calibrated`: o200k times a ratio learned from this
session's reported usage; `estimated`: o200k times a ratio that others measured, or a rule."""

PIECE = 100_000
"""Code points counted at once (ours): tiktoken panics on about a million blanks."""

SHORT = 400
"""Code points up to which a text's count is remembered (ours): stubs and what is recited are asked
for again at every step."""

_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
STORED = "o200k_base"
"""The encoding in which blocks are counted for good; scaled where a model has another."""

_NAMES = (STORED, "cl100k_base")


@dataclass(frozen=True, slots=True)
class Counting:
    """How the tokens of a session are counted; frozen with whatever was counted by it.

    `permille` scales o200k counts; 1000 where the basis is exact. `encoding` is what counts.
    """

    basis: Basis
    permille: int = 1000
    encoding: str = STORED


@dataclass(frozen=True, slots=True)
class Counted:
    """A count and whether all of it was really counted; `estimated` marks that a part was not."""

    tokens: int
    estimated: bool = False


class NoVocabulary(RuntimeError):
    """The vocabulary is neither in the cache directory nor in the bpe-openai wheel."""


def cache_directory() -> Path:
    """Where tiktoken finds vocabularies: TIKTOKEN_CACHE_DIR, or a folder of this user's."""
    given = os.environ.get("TIKTOKEN_CACHE_DIR")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "contextlab" / "tiktoken"


def seed(directory: Path, names: Sequence[str] = _NAMES) -> None:
    """Unpack the vocabularies of the bpe-openai wheel under the names that tiktoken looks for.

    Each file appears whole or not at all; tiktoken itself checks its hash when it loads it.
    Raises NoVocabulary where the wheel lacks one that is not there yet.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        # SHA-1 of the address is tiktoken's own naming of cache files, no protection.
        target = directory / hashlib.sha1(_URL.format(name).encode()).hexdigest()  # noqa: S324
        if target.exists():
            continue
        # Found but not imported: importing it builds two vocabularies of its own.
        wheel = find_spec("bpe_openai")
        places = wheel.submodule_search_locations if wheel is not None else None
        source = Path(places[0] if places else ".") / "data" / f"{name}.tiktoken.gz"
        if not source.is_file():
            raise NoVocabulary(f"{name} is not in the bpe-openai wheel")
        with tempfile.NamedTemporaryFile(dir=directory, delete=False) as file:
            file.write(gzip.decompress(source.read_bytes()))
        Path(file.name).replace(target)


@lru_cache(maxsize=2)
def _encoding(name: str) -> Any:
    # Loaded late: it takes 0.2 s and 100 MB, and most processes never count.
    import tiktoken

    directory = cache_directory()
    seed(directory, (name,))
    os.environ["TIKTOKEN_CACHE_DIR"] = str(directory)
    return tiktoken.get_encoding(name)


def count(text: str, encoding: str = STORED) -> int:
    """Tokens of a text under an encoding, special-token texts counted as plain text."""
    # As `counted`, without its frame: a recitation asks for some forty lines at every step.
    found = _remembered(text, encoding) if len(text) <= SHORT else _counted(text, encoding)
    return found.tokens


def counted(text: str, encoding: str = STORED) -> Counted:
    """Tokens of a text, and whether any of it had to be estimated.

    Texts over 100,000 code points are counted in pieces of that size, cut at a line's end where
    there is one in the last tenth; each cut adds a token at most. A lone surrogate counts as the
    replacement character. Raises NoVocabulary without a vocabulary.
    """
    return _remembered(text, encoding) if len(text) <= SHORT else _counted(text, encoding)


def _counted(text: str, encoding: str) -> Counted:
    vocabulary = _encoding(encoding)
    if len(text) <= PIECE:
        return _piece(vocabulary, text)
    tokens, estimated = 0, False
    for piece in _pieces(text):
        one = _piece(vocabulary, piece)
        tokens, estimated = tokens + one.tokens, estimated or one.estimated
    return Counted(tokens, estimated)


_remembered = lru_cache(maxsize=8192)(_counted)


def _pieces(text: str) -> Iterable[str]:
    start = 0
    while start < len(text):
        end = start + PIECE
        if end < len(text):
            line = text.rfind("\n", end - PIECE // 10, end)
            end = line + 1 if line > 0 else end
        yield text[start:end]
        start = end


def _piece(vocabulary: Any, text: str) -> Counted:
    try:
        return Counted(len(vocabulary.encode_ordinary(text)))
    except UnicodeEncodeError:
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return Counted(len(vocabulary.encode_ordinary(whole)))
    except BaseException as problem:
        # A Rust panic is no Exception; whatever else is none must go its way.
        if type(problem).__name__ != "PanicException":
            raise
        return Counted(estimate([text]), estimated=True)


def encoding_for(model: str) -> str | None:
    """The public vocabulary of a model, or None where its vendor publishes none.

    o200k_base: GPT-4o, 4.1, 4.5, 5 and later, the o series, codex and gpt-oss; cl100k_base: GPT-4
    and 3.5 (tiktoken's own model table).
    """
    name = model.lower().rsplit("/", 1)[-1]
    if name.startswith(("gpt-4o", "chatgpt-4o", "gpt-4.1", "gpt-4.5", "gpt-oss", "codex")):
        return "o200k_base"
    if name.startswith(("gpt-4", "gpt-3.5", "gpt-35")):
        return "cl100k_base"
    if name.startswith(("gpt-", "o1", "o3", "o4")):
        return "o200k_base"
    return None


RATIOS: dict[str, int] = {
    "claude-opus-4-6": 1285,
    "claude-sonnet-4-6": 1222,
    "claude-sonnet-5": 1702,
    "claude-fable-5": 1730,
    "claude-opus-5": 1517,
    "claude-opus-4-5": 1245,
    "claude-sonnet-4-5": 1245,
    "claude-sonnet-4": 1121,
    "claude": 1285,
    "deepseek": 1075,
}
"""Permille of o200k tokens by the start of a model's name, longest first.

The first four are medians of `calibrate` over recorded Claude Code sessions (7, 1, 2 and 2). The
next three and DeepSeek are Opus 4.6's, scaled by the characters a token of each: 2.81 against 2.38,
2.90, 3.22 and 3.36 (docs/sources.md, Token ratios). Sonnet 4.5 takes that of its generation, Opus
4.5's; other Claude models take Opus 4.6's.
"""


def default_counting(model: str) -> Counting:
    """How to count for a model before any of its usage is known."""
    encoding = encoding_for(model)
    if encoding is not None:
        return Counting("exact", 1000, encoding)
    name = model.lower().rsplit("/", 1)[-1]
    for start in sorted(RATIOS, key=len, reverse=True):
        if name.startswith(start):
            return Counting("estimated", RATIOS[start])
    return Counting("estimated")


def scaled(o200k: int, permille: int) -> int:
    """Tokens of a session's counting from an o200k count; the browser computes the same."""
    return (o200k * permille + 500) // 1000


LEAST_GROWTH = 300
"""o200k tokens that a step must add to say anything about a ratio (ours)."""

LEAST_STEPS = 5
"""Clean steps that a ratio is learned from at least (ours)."""


def calibrate(session: Session, o200k: Mapping[str, int]) -> int | None:
    """The ratio that a session's own usage shows, in permille; None where it shows none.

    Growth of the reported prompt over growth of o200k tokens (`o200k`: counts by block id), summed
    over clean steps: big results weigh more, as they do in a context. A step is clean where the
    call before it reported usage too, under the same model, the prompt grew, at least 300 tokens
    were added, and nothing was added that logs hide or models count apart (thinking, media). Where
    fewer than five steps are that clean, thinking whose text the log shows is allowed. Ratios
    outside 0.5 to 3 are not believed. The method is that of docs/sources.md, Token ratios; the
    sum instead of a median is ours, it meets the reported prompts more closely.
    """
    return _ratio(session, o200k, thinking=False) or _ratio(session, o200k, thinking=True)


def _ratio(session: Session, o200k: Mapping[str, int], *, thinking: bool) -> int | None:
    fresh: dict[int, list[Block]] = {}
    for block in session.blocks:
        fresh.setdefault(block.born, []).append(block)

    def clean(block: Block) -> bool:
        shown = thinking and block.type == "thinking" and o200k.get(block.id, 0) > 0
        return shown or block.type in ("text", "tool_use", "tool_result")

    steps, grown, added = 0, 0, 0
    for before, now in zip(session.calls, session.calls[1:], strict=False):
        blocks = fresh.get(now.step, [])
        if before.usage is None or now.usage is None or before.model != now.model:
            continue
        growth = now.usage.prompt - before.usage.prompt
        tokens = sum(o200k.get(block.id, 0) for block in blocks)
        if now.step != before.step + 1 or tokens < LEAST_GROWTH or not all(map(clean, blocks)):
            continue
        if 0.5 <= growth / tokens <= 3.0:
            steps, grown, added = steps + 1, grown + growth, added + tokens
    return round(grown / added * 1000) if steps >= LEAST_STEPS else None


def counting_for(session: Session, o200k: Mapping[str, int]) -> Counting:
    """The best counting for a recorded session: exact, else calibrated, else estimated."""
    given = default_counting(session.model)
    if given.basis == "exact":
        return given
    permille = calibrate(session, o200k)
    return given if permille is None else Counting("calibrated", permille)


def estimate(texts: Iterable[str], chars_per_token: int = 4) -> int:
    """The published estimate for a list of messages: no vocabulary, a tenth on top.

    `int(1.1 * sum(code points // 4 + 5))`, 3 instead of 4 for code; a message that is mostly
    Chinese counts 1.5 code points a token. Shannon's (docs/sources.md, Token estimate).
    """
    total = 0
    for text in texts:
        if _mostly_chinese(text):
            total += len(text) * 2 // 3 + 5
        else:
            total += len(text) // chars_per_token + 5
    # In whole numbers: 1.1 is no binary fraction, and other languages must get the same.
    return total * 11 // 10


def _mostly_chinese(text: str) -> bool:
    sample = text[:2_000]
    wide = sum("\u3400" <= char <= "\u9fff" for char in sample)
    return wide * 2 > len(sample)
