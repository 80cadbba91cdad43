"""What runs of real agents have in common: a folder, an outage, a replay, checks."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.live.agents import audit
from benchmarks.live.agents.coding_task import finished, project
from benchmarks.live.agents.stage import Stage, first_session, stage, watching

Json = dict[str, Any]
OPEN, KILL, START, READ_BACK = 3, 24, 29, 45
"""Steps at which the replay must be open, our server dies, comes back, and the model reads back."""
AGAIN_SECONDS = 5
"""How long the model thinks while the proxy does not manage yet: it asks our server again soon."""


@contextmanager
def workplace() -> Iterator[Stage]:
    """A stage with the project, in a folder that is removed."""
    with tempfile.TemporaryDirectory() as folder, stage(Path(folder)) as on:
        project(on.work)
        yield on


def outage(
    on: Stage,
    is_managed: Callable[[Json], bool],
    more: Mapping[int, Callable[[], None]] | None = None,
) -> Callable[[int, Json], None]:
    """What happens at a step: our server dies while the model answers, and comes back later.
    `more` are things that also happen, each at its step."""
    acts = {
        OPEN: lambda: on.opened.wait(120),
        KILL: on.kill_server,
        START: on.start_server,
        **(more or {}),
    }

    def at_step(step: int, body: Json) -> None:
        if (act := acts.pop(step, None)) is not None:
            act()
        elif step > START and not is_managed(body):
            time.sleep(AGAIN_SECONDS)

    return at_step


def followed(on: Stage, agent: subprocess.Popen[str]) -> tuple[Json, list[int]]:
    """An agent's session once the agent has ended, and the steps that an open replay showed."""
    with watching(on) as page:
        found = first_session(on, agent)
        page.open(found["id"])
        code = page.until_ended(agent)
        assert code == 0, on.said[-2000:]
        own = on.lab.request("GET", f"sessions/{found['id']}")
        return own, page.shown(own["steps"])


def checks(
    on: Stage,
    session: str,
    format: str,
    bodies: list[Json],
    *,
    refused: list[str],
    expected: list[Json],
    shown: list[int],
) -> list[audit.Row]:
    """What must hold of every managed session: `bodies` are its managed requests, `refused` what
    the provider said, `expected` what the agent's own log has, `shown` what the replay showed."""
    stable = audit.stability(on.lab, session, format, bodies)
    lost = audit.lost(audit.messages(on.lab, session), expected)
    return [
        ("task done by the agent", finished(on.work), ""),
        ("requests refused by the provider", not refused, refused[:2]),
        *audit.stable(stable),
        ("calls and results that are not stored", not lost, lost[:5]),
        ("replay followed", len(shown) > 30, f"{len(shown)} steps shown of {shown[-1]}"),
    ]
