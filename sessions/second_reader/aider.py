"""Aider: what the screen showed, with the client's lines taken out."""

from __future__ import annotations

import re
from itertools import groupby

from sessions.second_reader.arrays import sequence
from sessions.second_reader.reread import Reread, pieces

_STARTED = re.compile(r"^# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\S\n]*$", re.M)
_SENT = re.compile(r"/(ask|architect|code|context)\b")
"""Commands whose text the model reads."""


def read(data: bytes) -> list[Reread]:
    """Read the sessions of a history; no token is counted in it."""
    text = data.decode("utf-8-sig", "replace")
    starts = [*(found.start() for found in _STARTED.finditer(text)), len(text)]
    return [
        _session(text[:start].count("\n") + 1, text[start:end].split("\n")[1:])
        for start, end in zip(starts, starts[1:], strict=False)
    ]


def _session(first: int, lines: list[str]) -> Reread:
    numbered = enumerate((line.rstrip("\r") for line in lines), start=first + 1)
    shown = [(at, line) for at, line in numbered if _by(line)]
    said = []
    for by, listed in groupby(shown, lambda one: _by(one[1])):
        group = list(listed)
        texts = [re.sub("^#### ?", "", one) if by == "person" else one for _, one in group]
        text = "\n".join(one.rstrip() for one in texts).strip()
        if by != "report" and text and not (by == "person" and _is_for_client(text)):
            said.append((group[0][0], pieces(text, group[0][0]), by == "model", None))
    return sequence(said)


def _by(line: str) -> str:
    """Who wrote a line; empty for the client's, which end with two spaces, but for its reports."""
    if line.startswith("> ") and line.endswith("  "):
        return "report" if line.startswith("> Tokens:") else ""
    return "person" if line.startswith("####") and line.endswith("  ") else "model"


def _is_for_client(text: str) -> bool:
    if text[0] in "/!":
        return _SENT.match(text) is None
    return "(Y)es/(N)o" in text.partition("\n")[0]
