"""Convert sent requests for the simulator: the new part of each, and its breakpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import takewhile

from compaction.cache.prefix_lint import MESSAGE_SETTINGS, SYSTEM_SETTINGS, pictured
from compaction.cache.prefix_pieces import Json, PromptPiece, marked, pieces_of, size
from compaction.cache.simulator import MOST_BREAKPOINTS, Breakpoint, Request

_CHARS_PER_10_TOKENS = 29


def request_of(
    previous: Mapping[str, Json] | None,
    current: Mapping[str, Json],
    step: int,
    at: int | None,
    minimum: int = 0,
) -> Request:
    """Convert a request in Anthropic's form, compared with the one sent before it.

    Tokens are estimated from bytes. Breakpoints are the last four blocks with a cache mark; without
    any, the end of the system prompt and the end of the request. `at` is in ms since the epoch.
    Linear in the bytes of both requests.
    """
    pieces = list(pieces_of(current))
    before = list(pieces_of(previous or {}))
    ends = _ends(pieces)
    pairs = zip(before, pieces, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: _alike(*pair), pairs))
    unchanged = ends[same - 1] if same else 0
    total = ends[-1] if ends else 0
    layers = [sum(1 for one in pieces if one.layer == name) for name in ("tools", "system")]
    tools = ends[layers[0] - 1] if layers[0] else 0
    system = ends[sum(layers) - 1] if sum(layers) else 0
    cut = same < len(before) and same < len(pieces)
    return Request(
        step=step,
        total=total,
        unchanged=unchanged,
        breakpoints=_breakpoints(current, pieces, ends, system),
        model=str(current.get("model") or ""),
        at=at,
        minimum=minimum,
        appended=max(total - _ends(before)[-1], 0) if cut and before else None,
        tools=tools,
        system=system,
        changed="edit" if cut else "unexplained",
        images=any(one.layer == "messages" and pictured(one.value) for one in pieces),
        settings=_settings(current, MESSAGE_SETTINGS),
        toggles=_settings(current, SYSTEM_SETTINGS),
    )


def _alike(one: PromptPiece, other: PromptPiece) -> bool:
    return one.layer == other.layer and one.text == other.text


def _ends(pieces: list[PromptPiece]) -> list[int]:
    """Return the estimated tokens up to the end of each piece."""
    ends, passed = [], 0
    for piece in pieces:
        passed += size(piece.text)
        ends.append(passed * 10 // _CHARS_PER_10_TOKENS)
    return ends


def _settings(request: Mapping[str, Json], names: tuple[str, ...]) -> str:
    return json.dumps({name: request[name] for name in names if request.get(name) is not None})


def _breakpoints(
    request: Mapping[str, Json], pieces: list[PromptPiece], ends: list[int], system: int
) -> tuple[Breakpoint, ...]:
    marks = marked(request)
    found: dict[int, int] = {}
    for place, (piece, end) in enumerate(zip(pieces, ends, strict=True)):
        wanted = piece.path in marks if marks else end == system or place == len(pieces) - 1
        if wanted and end:
            found[end] = place
    last = sorted(found.items())[-MOST_BREAKPOINTS:]
    return tuple(Breakpoint(end, place) for end, place in last)
