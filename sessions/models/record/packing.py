"""A manifest's columns as pages receive them: mostly zeros, which compress to almost nothing.

A value is sent as its difference to what is expected from the values before it, and a column of
zeros as an empty list. Keep in sync with `frontend/src/replay/manifest/packing.ts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from sessions.models.record.manifest import REPLACEMENT

Packed = dict[str, Any]
Values = Sequence[int | None]

AS_THEY_ARE = ("kind", "tokens", "index", "flags", "closed")


def packed(columns: Mapping[str, Sequence[int]]) -> Packed:
    """Pack the entries of a run.

    `revisions` and `steps` are the number and the step of each revision. An entry opened or closed
    by one is expected to begin or end there, others to begin where the last of them did, and a
    replacement to be opened by what closed the entry before it.
    """
    steps = dict(zip(columns["closed"], columns["to"], strict=True))
    steps |= dict(zip(columns["edit"], columns["from"], strict=True))
    steps[0] = 0
    found: Packed = {name: columns[name] for name in AS_THEY_ARE}
    begins: list[int] = []
    edits: list[int] = []
    born = closing = 0
    entries = zip(
        columns["from"], columns["edit"], columns["flags"], columns["closed"], strict=True
    )
    for begin, edit, flags, closed in entries:
        begins.append(begin - (steps[edit] if edit else born))
        edits.append(edit - closing if flags & REPLACEMENT else edit)
        born, closing = born if edit else begin, closed
    found |= {"from": begins, "edit": edits, "message": _differences(columns["message"])}
    ends = zip(columns["to"], columns["closed"], strict=True)
    found["to"] = [end - steps[closed] for end, closed in ends]
    numbers = sorted(steps)
    return {name: values if any(values) else [] for name, values in found.items()} | {
        "count": len(begins),
        "revisions": _differences(numbers),
        "steps": _differences([steps[number] for number in numbers]),
    }


def unpacked(found: Packed) -> dict[str, list[int]]:
    """The columns of packed entries."""
    zeros = [0] * found["count"]
    filled = {name: values or zeros for name, values in found.items() if name != "count"}
    numbers = accumulate(found["revisions"])
    steps = dict(zip(numbers, accumulate(found["steps"]), strict=True))
    begins: list[int] = []
    edits: list[int] = []
    born = closing = 0
    entries = zip(*(filled[name] for name in ("from", "edit", "flags", "closed")), strict=True)
    for begin, edit, flags, closed in entries:
        edits.append(edit + closing if flags & REPLACEMENT else edit)
        begins.append(begin + (steps[edits[-1]] if edits[-1] else born))
        born, closing = born if edits[-1] else begins[-1], closed
    ends = zip(filled["to"], filled["closed"], strict=True)
    return {name: filled[name] for name in AS_THEY_ARE} | {
        "from": begins,
        "to": [end + steps[closed] for end, closed in ends],
        "edit": edits,
        "message": list(accumulate(filled["message"])),
    }


def packed_steps(steps: Mapping[str, Values]) -> dict[str, Values]:
    """Pack figures per step: times follow each other, a prompt is expected to be the sum of its
    parts, and the cache to hold what the call before read and wrote."""
    prompts, ats, reads = [], [], []
    at = held = 0
    columns = ("at", "prompt", "uncached", "read", "write")
    for moment, prompt, uncached, read, write in zip(*map(steps.__getitem__, columns), strict=True):
        ats.append(None if moment is None else moment - at)
        at = at if moment is None else moment
        parts = (uncached or 0) + (read or 0) + (write or 0)
        prompts.append(None if prompt is None else prompt - parts)
        reads.append(None if read is None else read - held)
        held = (read or 0) + (write or 0)
    made = {**steps, "at": ats, "prompt": prompts, "read": reads}
    count = len(ats)
    return {name: [] if values.count(0) == count else values for name, values in made.items()}


def packed_events(
    events: Sequence[Mapping[str, Any]], prompts: Values, labeled: int
) -> dict[str, list[Any]]:
    """Pack marks on the timeline into columns: sizes as their difference to the prompts reported
    for the step and the one before, labels from a step on."""

    def size(name: str, back: int) -> list[int | None]:
        return [
            None if event[name] is None else event[name] - _at(prompts, event["step"] - back)
            for event in events
        ]

    return {
        "step": _differences([event["step"] for event in events]),
        "revision": _differences([event["revision"] or 0 for event in events]),
        "before": size("before", 2),
        "after": size("after", 1),
        "kind": [event["kind"] for event in events],
        "basis": [event["basis"] for event in events],
        "label": [event["label"] if event["step"] >= labeled else "" for event in events],
    }


def _at(values: Values, index: int) -> int:
    return (values[index] if 0 <= index < len(values) else None) or 0


def _differences(values: Sequence[int]) -> list[int]:
    return [value - before for value, before in zip(values, [0, *values], strict=False)]
