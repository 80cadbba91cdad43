"""The demo sessions: model, hidden prompt, provider and script of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from compaction.cache.simulator import TTL
from sessions.demo.bulk import OUTPUTS
from sessions.demo.desk.research import Research
from sessions.demo.desk.support import Support
from sessions.demo.harbor.code import sources
from sessions.demo.harbor.move import ClusterMove
from sessions.demo.harbor.shell import ShellWorkspace
from sessions.demo.harbor.tickets import Tickets
from sessions.demo.player import Player
from sessions.demo.provider import AnthropicCache, Count, OpenAI, Piece, Provider
from sessions.demo.stage import Stage
from sessions.demo.tools import SYSTEM, TOOLS
from sessions.demo.workspace import Workspace, ferry_sources, own_sources, script
from sessions.importers import records

SONNET = "claude-sonnet-4-5"
WINDOW = 200_000
_HOUR = 3_600_000
_OWN, _FERRY, HARBOR = "/home/mara/contextlab", "/home/mara/ferry", "/home/mara/harbor"
_NOTES, _DESK = "/home/mara/notes", "/home/mara/desk"


@dataclass(frozen=True, slots=True)
class PlayedSession:
    """A session to play. `ago` is its start in hours before the base time; `hidden` are tokens of
    tools, system prompt and memory that its log does not show."""

    name: str
    title: str
    ago: float
    model: str = SONNET
    agent: str = "claude-code"
    window: int = WINDOW
    folder: str = _OWN
    hidden: tuple[int, int, int] = (15_900, 4_100, 8_300)
    ttl: TTL = "5m"
    ratio: float = 1.25
    reports_usage: bool = True
    shown: bool = False
    """Whether the log shows system prompt and tools."""
    outcome: str = ""
    """How it ended, as its agent reports it: succeeded, failed or abandoned."""

    @property
    def external_id(self) -> str:
        """The id under which the session is stored."""
        return f"demo:{self.name}"


_CODEX = partial(
    PlayedSession,
    agent="codex",
    model="gpt-5-codex",
    window=272_000,
    hidden=(5_200, 4_900, 1_700),
    ratio=1.0,
)

PARTS = (
    PlayedSession("healthy", "Measure which lines are read again", 3.0, outcome="succeeded"),
    PlayedSession(
        "breaks",
        "Why does the replay page take four seconds?",
        6.5,
        hidden=(15_200, 4_120, 3_760),
        outcome="succeeded",
    ),
    PlayedSession(
        "long",
        "Move twenty services to the new cluster",
        31,
        folder=HARBOR,
        hidden=(18_400, 4_300, 11_200),
        ratio=1.3,
        ttl="1h",
        outcome="succeeded",
    ),
    PlayedSession(
        "agents", "What can a hostile log file do to us?", 52, hidden=(16_300, 4_100, 12_400)
    ),
    PlayedSession(
        "recovers",
        "Wrong arrival on the night the clocks change",
        26,
        agent="ferry-agent",
        folder=_FERRY,
        hidden=(0, 0, 0),
        shown=True,
        outcome="succeeded",
    ),
    PlayedSession(
        "big",
        "Seven passengers were charged twice",
        193,
        folder=_FERRY,
        hidden=(15_900, 4_100, 2_300),
        ratio=1.28,
        outcome="failed",
    ),
    _CODEX(
        "codex",
        "Children under four go free",
        27.5,
        folder=_FERRY,
        outcome="succeeded",
    ),
    PlayedSession(
        "tickets",
        "New limits by circular: berths to stores",
        220,
        folder=HARBOR,
        outcome="succeeded",
    ),
    _CODEX(
        "patches",
        "New limits by circular: sailings to invoices",
        246,
        folder=HARBOR,
        outcome="succeeded",
    ),
    PlayedSession(
        "research",
        "Power from the quay in thirty ports",
        297,
        agent="researcher",
        folder=_NOTES,
        hidden=(7_100, 2_600, 900),
        outcome="succeeded",
    ),
    PlayedSession(
        "support",
        "Questions of passengers, late shift",
        105,
        agent="quay-support",
        model="gpt-5-mini",
        window=272_000,
        folder=_DESK,
        hidden=(3_400, 2_900, 0),
        ratio=1.0,
        outcome="abandoned",
    ),
)
"""The sessions started by people, over two weeks; sub-agents come with the session that spawns
them."""

LIVE = (
    PlayedSession(
        "gateway",
        "How long may a text message be?",
        0.4,
        agent="demo-scout",
        folder=_FERRY,
        hidden=(0, 0, 0),
        shown=True,
    ),
    PlayedSession(
        "notices",
        "Late ships in two languages",
        0.2,
        agent="demo-writer",
        folder=_FERRY,
        hidden=(0, 0, 0),
        shown=True,
    ),
)
"""Live agents: one finished, one waiting for an approval."""

_SUB_AGENT = PlayedSession("", "", 0, hidden=(13_800, 1_900, 3_100))
_CHILDREN = {
    "importers": replace(_SUB_AGENT, name="agents-importers", title="Hostile files in importers"),
    "store": replace(_SUB_AGENT, name="agents-store", title="Hostile records in the store"),
    "limits": replace(
        _SUB_AGENT,
        name="agents-limits",
        title="Which limits exist",
        model="claude-haiku-4-5",
        reports_usage=False,
    ),
}


def perform(part: PlayedSession, now_ms: int, count: Count) -> list[records.Session]:
    """Play one session, followed by its sub-agents. Times are in ms since the epoch."""
    stage = _stage(part, now_ms - int(part.ago * _HOUR), count)
    played = [stage.session]
    if play := _BY_RULE.get(part.name):
        play(stage)
        return played
    workspace = Workspace(part.folder, ferry_sources() if part.folder == _FERRY else own_sources())
    if part.shown:
        stage.system([{"type": "tools", "tools": TOOLS}])
        stage.system([{"type": "text", "text": SYSTEM}])
    spawn = partial(_spawn, parent=part, workspace=workspace, count=count, played=played)
    Player(stage, workspace, OUTPUTS, spawn).play(script(part.name))
    return played


def _move(stage: Stage) -> None:
    ClusterMove(stage, Workspace(HARBOR, sources())).play()


def _tickets(stage: Stage) -> None:
    Tickets(stage, Workspace(HARBOR, sources()), "tickets").play(0, 13)


def _patches(stage: Stage) -> None:
    Tickets(stage, ShellWorkspace(HARBOR, sources()), "patches").play(13, 15)


def _research(stage: Stage) -> None:
    Research(stage).play()


def _support(stage: Stage) -> None:
    Support(stage, 36).play()


_BY_RULE: dict[str, Callable[[Stage], None]] = {
    "long": _move,
    "tickets": _tickets,
    "patches": _patches,
    "research": _research,
    "support": _support,
}
"""The sessions that are made by rule; the others are written down as scripts."""


def _spawn(
    name: str,
    tool_call: str,
    at: int,
    *,
    parent: PlayedSession,
    workspace: Workspace,
    count: Count,
    played: list[records.Session],
) -> tuple[str, int]:
    """Play a sub-agent; return its report and when it finished."""
    part = replace(_CHILDREN[name], ttl=parent.ttl, ratio=parent.ratio)
    stage = _stage(part, at, count)
    stage.session.parent, stage.session.parent_call = parent.external_id, tool_call
    stage.human(_prompt(played[0], tool_call))
    Player(stage, Workspace(workspace.root, workspace.files)).play(script(f"{parent.name}--{name}"))
    played.append(stage.session)
    return stage.said, stage.at


def _prompt(parent: records.Session, tool_call: str) -> str:
    for record in parent.records:
        if isinstance(record, records.Message):
            for block in record.blocks:
                if block.get("id") == tool_call:
                    return str(block["input"]["prompt"])
    raise LookupError(tool_call)


def _stage(part: PlayedSession, at: int, count: Count) -> Stage:
    session = records.Session(
        part.external_id,
        agent=part.agent,
        model=part.model,
        title=part.title,
        window=part.window,
        meta={"cwd": part.folder, "demo": "Played by a script of ContextLab, not by real people."},
    )
    names = ("tools", "system", "memory")
    hidden = [Piece(n, t) for n, t in zip(names, part.hidden, strict=True) if t]
    provider = _provider(part) if part.reports_usage else None
    return Stage(session, at, count, provider, hidden)


def _provider(part: PlayedSession) -> Provider:
    if part.model.startswith("gpt"):
        return OpenAI(ratio=part.ratio)
    shared = part.hidden[0] + part.hidden[1]
    return AnthropicCache(part.external_id, shared=shared, ttl=part.ttl, ratio=part.ratio)
