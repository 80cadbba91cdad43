"""What a text is about: stems of its distinctive words, and names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

LONGEST = 6_000
"""Code points considered at the start of a text (our choice)."""


_IDENTIFIER = re.compile(r"[A-Za-z_][\w./:@-]{3,}[\w]")


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
"""Stop words of the most common languages."""


def count_words(words: set[str]) -> int:
    pairs = sum(bool(_UNSPACED.match(word)) for word in words)
    return len(words) - pairs + pairs // 2


def terms_of(texts: Iterable[str]) -> tuple[set[str], set[str]]:
    """Return the stems of distinctive words, and the names."""
    words: set[str] = set()
    names: set[str] = set()
    for text in texts:
        stems, named = _terms_of(text[:LONGEST])
        words |= stems
        names |= named
    return words, names


@lru_cache(maxsize=64)
def _terms_of(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the terms of one text; cached, because a text is judged up to four times."""
    found = {one for one in _IDENTIFIER.findall(text) if _PARTED.search(one)}
    names = {one.rsplit("/", 1)[-1].casefold() for one in found}
    names.update(number.lstrip("#") for number in _NUMBER.findall(text))
    runs = _UNSPACED.findall(text)
    spaced = {one for one in _WORD.findall(_HUMP.sub(" ", text)) if not _UNSPACED.search(one)}
    words = {one[:_STEM] for one in map(str.casefold, spaced) if one not in _COMMON}
    words.update(run[place : place + 2] for run in runs for place in range(len(run) - 1))
    return frozenset(words), frozenset(names)
