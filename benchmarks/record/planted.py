"""Causes of cache breaks planted into real sessions: is each named right? See docs/record/cache.md.

    CONTEXTLAB_CORPUS=/path/to/logs python -m benchmarks.record.planted
    python -m benchmarks.record.planted /path/to/logs

As sent: the contexts of two steps that follow each other are rendered as requests, with a list of
tools and a system prompt of our own; one thing is changed in the second, and the simulator names
the cause from the bytes alone. As reported: real usage in which one call lost its prefix, with one
thing in the log that tells why; the measured side names the cause. Writes nothing of the logs.
"""

from __future__ import annotations

import copy
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")
import django

django.setup()

from compaction import render  # noqa: E402
from compaction.cache.forecast import Moment, PromptChange, whole_change  # noqa: E402
from compaction.cache.measured import measured  # noqa: E402
from compaction.cache.sent import request_of  # noqa: E402
from compaction.cache.simulator import CacheState, advance  # noqa: E402
from compaction.context.edits import context_at  # noqa: E402
from compaction.context.session import Call, Usage  # noqa: E402
from compaction.simulation.recording import Recording  # noqa: E402
from sessions import importers  # noqa: E402
from sessions.actions.lab.unstored import recording_of_log  # noqa: E402
from sessions.importers import records  # noqa: E402
from sessions.models.record.values import block_id  # noqa: E402

Json = Any
PER_SESSION = 6
MINUTE = 60_000
TEXT = "You work on the code in this folder. Today is 2026-03-01 10:15. This is run 7 of 9. "
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def tool(name: str) -> Json:
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": name}}}
    return {"name": name, "description": f"{name} a file. " * 60, "input_schema": schema}


TOOLS = [tool(name) for name in ("read", "write", "grep", "list")]


def sessions(folder: Path) -> Iterator[tuple[records.Session, Recording]]:
    """Yield every session below the folder with at least six calls, once."""
    seen = set()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        try:
            log = importers.parse(file.read_bytes(), file.name)
        except importers.NotALog:
            continue
        for session in log.sessions:
            recording = recording_of_log(session)
            if recording and len(recording.value.calls) >= 6 and session.external_id not in seen:
                seen.add(session.external_id)
                yield session, recording


# As sent


def requests(session: records.Session, recording: Recording) -> Iterator[tuple[Json, Json]]:
    """Yield pairs of consecutive requests, the second only adding to the first."""
    messages = [one for one in session.records if isinstance(one, records.Message)]
    wires = {
        block_id(number, index): block
        for number, message in enumerate(messages, start=1)
        for index, block in enumerate(message.blocks)
    }
    entries = recording.lived.entries
    last = len(recording.value.calls)
    revised = {revision.step for revision in recording.lived.revisions}
    steps = sorted({3 + (last - 3) * place // PER_SESSION for place in range(PER_SESSION)})
    for step in steps:
        pair = []
        for one in (step - 1, step):
            blocks = list(context_at(entries, one).values())
            if not blocks or any(block.id not in wires for block in blocks):
                break
            made = render.anthropic(blocks, lambda block: wires[block.id])
            pair.append(completed(made))
        if len(pair) == 2 and step not in revised:
            yield pair[0], pair[1]


def completed(made: Json) -> Json:
    """Add tools, a system prompt and cache marks to a request."""
    mark = {"cache_control": {"type": "ephemeral"}}
    tools = [*copy.deepcopy(TOOLS[:-1]), {**copy.deepcopy(TOOLS[-1]), **mark}]
    system = [{"type": "text", "text": TEXT * 40, **mark}]
    messages = copy.deepcopy(made["messages"])
    return {"model": "claude-opus-5", "tools": tools, "system": system, "messages": messages}


def cause(was: Json, now: Json, minutes: float = 1, minimum: int = 512) -> str | None:
    """Return the simulator's cause for the second request."""
    state = CacheState()
    advance(state, request_of(None, was, 1, 0, 512))
    use = advance(state, request_of(was, now, 2, int(minutes * MINUTE), minimum))
    return use.broken.cause if use.broken else None


def drop_tool(now: Json, dice: random.Random) -> None:
    del now["tools"][dice.randrange(3)]


def swap_tools(now: Json, dice: random.Random) -> None:
    one = dice.randrange(2)
    now["tools"][one], now["tools"][one + 1] = now["tools"][one + 1], now["tools"][one]


def keys_of_tool(now: Json, dice: random.Random) -> None:
    one = dice.randrange(3)
    now["tools"][one] = dict(reversed(now["tools"][one].items()))


def clock(now: Json, _dice: random.Random) -> None:
    now["system"][0]["text"] = now["system"][0]["text"].replace("10:15", "10:16")


def counter(now: Json, _dice: random.Random) -> None:
    now["system"][0]["text"] = now["system"][0]["text"].replace("run 7", "run 8")


def edit(now: Json, dice: random.Random) -> None:
    early = now["messages"][: max(len(now["messages"]) // 2, 1)]
    blocks = [block for message in early for block in message["content"]]
    block = dice.choice(blocks)
    kept = {key: value for key, value in block.items() if key in ("type", "tool_use_id", "id")}
    block.clear()
    block.update({**kept, "text": "[offloaded]"})


def images(now: Json, _dice: random.Random) -> None:
    now["messages"][-1]["content"].append(PICTURE)


def setting(now: Json, dice: random.Random) -> None:
    now[dice.choice(["tool_choice", "thinking", "effort"])] = {"type": "none"}


def far(now: Json, _dice: random.Random) -> None:
    for message in now["messages"]:
        for block in message["content"]:
            block.pop("cache_control", None)
    extra = [{"type": "text", "text": f"Note {number}."} for number in range(30)]
    now["messages"][-1]["content"] += extra
    now["messages"][-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}


def another_model(now: Json, _dice: random.Random) -> None:
    now["model"] = "claude-opus-4-8"


SENT: list[tuple[str, str, Callable[[Json, random.Random], None]]] = [
    ("tools", "a tool is gone", drop_tool),
    ("tools", "two tools changed places", swap_tools),
    ("tools", "keys of a tool in another order", keys_of_tool),
    ("system", "the time", clock),
    ("system", "a counter", counter),
    ("edit", "an early block is a stub", edit),
    ("images", "the first image", images),
    ("settings", "tool choice, thinking or effort", setting),
    ("look_back", "30 blocks more, one breakpoint", far),
    ("model", "another model", another_model),
]


def as_sent(was: Json, now: Json, dice: random.Random) -> Iterator[tuple[str, str, str | None]]:
    for wanted, what, plant in SENT:
        planted = copy.deepcopy(now)
        if wanted == "images" and '"image"' in repr(was).replace("'", '"'):
            continue
        plant(planted, dice)
        yield wanted, what, cause(was, planted)
    yield "ttl", "six minutes", cause(was, now, minutes=6)
    yield "minimum", "a minimum above the prompt", cause(was, now, minimum=10**7)
    yield "none", "nothing", cause(was, now) or "none"


# As reported


def moment(call: Call, changes: tuple[PromptChange, ...] = ()) -> Moment:
    return Moment(call.step, call.model, call.at, call.step, changes)


def as_reported(calls: list[Call], dice: random.Random) -> Iterator[tuple[str, str, str | None]]:
    """Return a real stretch of reported usage, with its last call losing its prefix."""
    place = dice.randrange(1, len(calls))
    before, call = calls[place - 1], calls[place]
    assert before.usage and call.usage and before.at is not None
    lost = Usage(call.usage.uncached, 0, call.usage.prompt - call.usage.uncached)
    call = Call(call.step, before.model, before.at + MINUTE, lost)
    early = [*calls[: place - 1], before]
    lived = 61 if before.usage.cache_write_1h else 6
    late = replace(call, at=before.at + lived * MINUTE)
    plants: list[tuple[str, Call, tuple[PromptChange, ...]]] = [
        ("ttl", late, ()),
        ("model", replace(call, model="another"), ()),
        ("tools", call, (whole_change("tools"),)),
        ("system", call, (whole_change("system"),)),
        ("edit", call, (PromptChange("edit", 0),)),
        ("rewind", call, (PromptChange("rewind", 0),)),
        ("settings", call, (PromptChange("settings", 0),)),
        ("restart", call, (PromptChange("restart", 0),)),
        ("unexplained", call, ()),
    ]
    for wanted, planted, changes in plants:
        moments = [(one, moment(one)) for one in early]
        broken = measured([*moments, (planted, moment(planted, changes))])[-1].broken
        yield wanted, "as reported", broken.cause if broken else None


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ["CONTEXTLAB_CORPUS"])
    right, planted, instead = Counter[str](), Counter[str](), Counter[str]()
    dice = random.Random(7)
    used = 0
    for session, recording in sessions(folder):
        found: list[tuple[str, str, str | None]] = []
        for was, now in requests(session, recording):
            found += as_sent(was, now, dice)
        calls = [c for c in recording.value.calls if c.usage and c.at is not None]
        calls = [c for c in calls if c.usage and c.usage.cache_read + c.usage.cache_write > 4_000]
        if len(calls) > 2 and any(c.usage.cache_write for c in calls if c.usage):
            for _ in range(PER_SESSION):
                found += as_reported(calls, dice)
        used += bool(found)
        for wanted, what, named in found:
            row = f"{wanted}: {what}"
            planted[row] += 1
            right[row] += wanted == named
            if wanted != named:
                instead[f"{row} -> {named}"] += 1
    print(f"{used} sessions, {sum(planted.values()):,} plants")
    for row, count in planted.items():
        print(f"{row:<48} {right[row]:>6} of {count:>6}  {right[row] / count:.1%}")
    print(f"{'all':<48} {sum(right.values()):>6} of {sum(planted.values()):>6}  "
          f"{sum(right.values()) / max(sum(planted.values()), 1):.2%}")  # fmt: skip
    for row, count in instead.most_common():
        print(f"    {row}: {count}")


if __name__ == "__main__":
    main()
