"""Count the tokens of a text: exactly with a public vocabulary, otherwise scaled or estimated."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

Basis = Literal["exact", "calibrated", "estimated"]
"""`exact`: the model's own vocabulary; `calibrated`: o200k times a ratio learned from this
session's reported usage; `estimated`: o200k times a published ratio, or a rule of thumb."""

PIECE = 100_000
"""Code points counted at once (our choice): tiktoken panics on about a million blanks."""

SHORT = 400
"""Code points up to which a count is memoized (our choice): stubs and recited lines are counted
again at every step."""

_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
STORED = "o200k_base"
"""The encoding whose counts are stored; scaled for models that use another."""

_NAMES = (STORED, "cl100k_base")


@dataclass(frozen=True, slots=True)
class Counting:
    """How the tokens of a session are counted; frozen once used.

    `permille` scales o200k counts; it is 1000 if the basis is exact. `encoding` does the counting.
    """

    basis: Basis
    permille: int = 1000
    encoding: str = STORED


@dataclass(frozen=True, slots=True)
class Counted:
    """A token count; `estimated` if any part of the text could not be counted."""

    tokens: int
    estimated: bool = False


VOCABULARIES = Path(__file__).with_name("vocabularies")


class NoVocabulary(RuntimeError):
    """The vocabulary is neither in the cache directory nor in an installed package."""


def cache_directory() -> Path:
    """Return tiktoken's vocabulary directory: TIKTOKEN_CACHE_DIR, or a folder of this user."""
    given = os.environ.get("TIKTOKEN_CACHE_DIR")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "contextlab" / "tiktoken"


def seed(directory: Path, names: Sequence[str] = _NAMES) -> None:
    """Unpack vocabularies under the names that tiktoken expects.

    Writes are atomic; tiktoken verifies the hash when it loads a file. Raises NoVocabulary if no
    package has a vocabulary that is not there yet.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        # tiktoken names its cache files by the SHA-1 of the URL; not a security measure.
        target = directory / hashlib.sha1(_URL.format(name).encode()).hexdigest()  # noqa: S324
        if target.exists():
            continue
        source = _packed(f"{name}.tiktoken.gz")
        with tempfile.NamedTemporaryFile(dir=directory, delete=False) as file:
            file.write(gzip.decompress(source.read_bytes()))
        Path(file.name).replace(target)


def _packed(name: str) -> Path:
    """A packed vocabulary: of our own wheel (hatch_build.py), in a checkout of bpe-openai's."""
    # Located without importing it: the import would build two vocabularies.
    other = find_spec("bpe_openai")
    places = other.submodule_search_locations if other is not None else None
    for folder in (VOCABULARIES, *(Path(place) / "data" for place in places or ())):
        if (folder / name).is_file():
            return folder / name
    raise NoVocabulary(f"{name} is in no installed package")


@lru_cache(maxsize=2)
def _encoding(name: str) -> Any:
    # Imported lazily: it takes 0.2 s and 100 MB, and most processes never count.
    import tiktoken

    directory = cache_directory()
    seed(directory, (name,))
    os.environ["TIKTOKEN_CACHE_DIR"] = str(directory)
    found = tiktoken.get_encoding(name)
    # The compiled half has its own copy; this one takes 30 MB in every process that counts.
    found._mergeable_ranks = {}
    return found


def count(text: str, encoding: str = STORED) -> int:
    """Count the tokens of a text in an encoding; special tokens count as plain text."""
    # Inlines `counted` for speed: a recitation counts about forty lines at every step.
    found = _remembered(text, encoding) if len(text) <= SHORT else _counted(text, encoding)
    return found.tokens


def counted(text: str, encoding: str = STORED) -> Counted:
    """Count the tokens of a text in an encoding, and tell whether any part had to be estimated.

    Texts over 100,000 code points are counted in pieces of that size, cut at a line end if the last
    tenth has one; each cut adds at most one token. A lone surrogate counts as the replacement
    character. Raises NoVocabulary without a vocabulary.
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
        # A Rust panic derives from BaseException only; other such exceptions must pass.
        if type(problem).__name__ != "PanicException":
            raise
        return Counted(estimate([text]), estimated=True)


def encoding_for(model: str) -> str | None:
    """Return the public vocabulary of a model, or None if its vendor publishes none.

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
"""Permille of o200k tokens by model name prefix, longest first.

The first four are medians of `token_ratio.calibrate` over recorded Claude Code sessions (7, 1, 2
and 2). The next three and DeepSeek scale the ratio of Opus 4.6 by characters per token: 2.81
against 2.38, 2.90, 3.22 and 3.36 (docs/sources.md, Token ratios). Sonnet 4.5 uses the ratio of Opus
4.5, which is of the same generation; other Claude models use that of Opus 4.6.
"""


def default_counting(model: str) -> Counting:
    """Return the counting for a model before any of its usage is known."""
    encoding = encoding_for(model)
    if encoding is not None:
        return Counting("exact", 1000, encoding)
    name = model.lower().rsplit("/", 1)[-1]
    for start in sorted(RATIOS, key=len, reverse=True):
        if name.startswith(start):
            return Counting("estimated", RATIOS[start])
    return Counting("estimated")


def scaled(o200k: int, permille: int) -> int:
    """Convert an o200k count to a session's counting; the frontend computes the same."""
    return (o200k * permille + 500) // 1000


def estimate(texts: Iterable[str], chars_per_token: int = 4) -> int:
    """Estimate the tokens of a list of messages without a vocabulary, plus a tenth.

    `int(1.1 * sum(code points // 4 + 5))`, 3 instead of 4 for code; a message that is mostly
    Chinese counts 1.5 code points per token. Shannon's formula (docs/sources.md, Token estimate).
    """
    total = 0
    for text in texts:
        if _mostly_chinese(text):
            total += len(text) * 2 // 3 + 5
        else:
            total += len(text) // chars_per_token + 5
    # Integer arithmetic: 1.1 is not exact in binary, and other languages must get the same result.
    return total * 11 // 10


def _mostly_chinese(text: str) -> bool:
    sample = text[:2_000]
    if sample.isascii():
        return False
    wide = sum("\u3400" <= char <= "\u9fff" for char in sample)
    return wide * 2 > len(sample)
