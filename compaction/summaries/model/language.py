"""Guess the language in which people write, by script and common words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

LOOK_AT = 20_000
"""Maximum code points examined over all texts, the newest."""

FEWEST = 3
"""Minimum common words found to name a language (our choice)."""

_SCRIPTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[\u3040-\u30ff]"), "Japanese"),
    (re.compile(r"[\uac00-\ud7af]"), "Korean"),
    (re.compile(r"[\u4e00-\u9fff]"), "Chinese"),
    (re.compile(r"[\u0400-\u04ff]"), "Russian"),
    (re.compile(r"[\u0600-\u06ff]"), "Arabic"),
    (re.compile(r"[\u0590-\u05ff]"), "Hebrew"),
    (re.compile(r"[\u0900-\u097f]"), "Hindi"),
    (re.compile(r"[\u0e00-\u0e7f]"), "Thai"),
    (re.compile(r"[\u0370-\u03ff]"), "Greek"),
)
"""Scripts and the most common language that uses each."""

_WORDS: Mapping[str, frozenset[str]] = {
    "English": frozenset({"the", "and", "is", "to", "of", "please", "this", "with", "that", "it"}),
    "German": frozenset({"der", "die", "und", "ist", "nicht", "bitte", "das", "mit", "ein", "ich"}),
    "French": frozenset({"le", "les", "et", "est", "pas", "une", "dans", "pour", "que", "vous"}),
    "Spanish": frozenset({"el", "los", "y", "es", "por", "una", "para", "que", "con", "favor"}),
    "Portuguese": frozenset({"o", "os", "e", "é", "não", "uma", "para", "que", "com", "você"}),
    "Italian": frozenset({"il", "gli", "e", "è", "non", "una", "per", "che", "con", "di"}),
}
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+", re.DOTALL)
_PATH = re.compile(r"(?<!\S)\S*[/_.\\]\S*")  # whole words only: from every letter it is quadratic
_LETTERS = re.compile(r"[^\W\d_]+")

WEIGHT = 3
"""Weight of a letter in another script relative to a Latin one: names and code are Latin."""


def language_of(texts: Iterable[str]) -> str:
    """Return the English name of a language, or "" if unclear.

    Code, paths and URLs do not count. A script other than Latin wins from a quarter of the weighted
    letters: people who write Chinese name files in English.
    """
    text = _PATH.sub(" ", _CODE.sub(" ", "\n".join(texts)[-LOOK_AT:]))
    words = [word.casefold() for word in _LETTERS.findall(text)]
    letters = sum(map(len, words))
    for pattern, language in _SCRIPTS:
        count = len(pattern.findall(text))
        if count and count * (1 + WEIGHT) >= letters:
            return language
    found = Counter(words)
    scores = {name: sum(found[word] for word in common) for name, common in _WORDS.items()}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] >= FEWEST else ""
