"""Which tools an agent may use when: what each tool needs first, and masks over a fixed list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

LEAST_ONE = "LeastOne"
"""The need that the use of any tool meets (Dakou)."""

OWN_USE = "OwnUse"
"""The need that only the use of the tool itself meets: ours, for tools that habits leave out."""

GROUP = "*"
"""Ends the name of a group: `browser_*` covers the tools with the prefix `browser_`."""

Sends = Literal["enabled", "all"]
"""The tools sent: only enabled ones, or all of them with a mask."""


@dataclass(frozen=True, slots=True)
class ToolGraph:
    """What each tool needs before it is enabled, and which tools are allowed in each state.

    `needs` holds, by tool and in order of registration, names of tools, groups or LEAST_ONE; all of
    them must be met, a group by any of its tools. `states` holds the names and groups allowed in
    each state, `after` the state that the use of a tool or a group leads to; without states
    everything is allowed. Tools that are not in `needs` depend on nothing.
    """

    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sends: Sends = "enabled"
    states: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)
    initial: str = ""


class Enabled(NamedTuple):
    """A tool, the step from which it is enabled, and the tools whose use met its needs.

    `by` is empty for a tool without needs, and its own name if it was used although disabled.
    """

    tool: str
    step: int
    by: tuple[str, ...] = ()


class Move(NamedTuple):
    """A change of state from a step on, caused by the use of a tool (empty: the initial state)."""

    step: int
    state: str
    by: str = ""


def matches(pattern: str, tool: str) -> bool:
    """Return whether a name or group covers a tool."""
    if pattern.endswith(GROUP):
        return tool.startswith(pattern[: -len(GROUP)])
    return pattern == tool


def cycle(graph: ToolGraph) -> tuple[str, ...]:
    """Return tools that wait for each other, the first repeated at the end; empty if there are
    none.

    A tool in a cycle could never be enabled. Unregistered names may still be registered; a group
    counts as waiting only if every one of its tools waits. Constant work per tool and need.
    """
    waiting = _stuck(graph)
    if not waiting:
        return ()
    path: list[str] = []
    tool = next(name for name in graph.needs if name in waiting)
    while tool not in path:
        path.append(tool)
        need = next(one for one in graph.needs[tool] if _none_free(graph, one, waiting))
        if need not in graph.needs:
            path.append(need)
        tool = next(one for one in graph.needs if one in waiting and _meets(one, need))
    return (*path[path.index(tool) :], tool)


def _meets(tool: str, need: str) -> bool:
    return need == LEAST_ONE or matches(need, tool)


def _none_free(graph: ToolGraph, need: str, waiting: set[str]) -> bool:
    """Return whether all tools that could meet a need are waiting; unknown tools may still come."""
    if need in graph.needs:
        return need in waiting
    meeting = [tool for tool in graph.needs if _meets(tool, need)]
    return bool(meeting) and waiting.issuperset(meeting)


def _stuck(graph: ToolGraph) -> set[str]:
    """Return the tools that stay disabled no matter which others are used."""
    enabling = Enabling()
    enabling.register(graph, 1)
    later = {need for needs in graph.needs.values() for need in needs}
    coming = [one for one in later if not any(_meets(tool, one) for tool in graph.needs)]
    todo = [*enabling.enabled, *coming]
    while todo:
        todo.extend(one.tool for one in enabling.use(todo.pop(), 1))
    return set(graph.needs) - set(enabling.enabled)


@dataclass(slots=True)
class Enabling:
    """Which tools are enabled since when, and why; updated with each use, never revoked.

    `used` holds the step of each tool's first use, `enabled` the enabled tools, `moves` the states,
    all in order. Work per use is constant, except for a tool's first use, which checks the needs
    waiting for it.
    """

    graph: ToolGraph = field(default_factory=ToolGraph)
    used: dict[str, int] = field(default_factory=dict)
    enabled: dict[str, Enabled] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    _unmet: dict[str, set[str]] = field(default_factory=dict)
    _waiting: dict[str, set[str]] = field(default_factory=dict)

    def register(self, graph: ToolGraph, step: int) -> list[Enabled]:
        """Replace the graph from a step on; return the tools it enables."""
        self.graph = graph
        self._unmet, self._waiting = {}, {}
        for tool, needs in graph.needs.items():
            if tool not in self.enabled:
                self._unmet[tool] = {need for need in needs if self._by(need) is None}
                for need in self._unmet[tool]:
                    self._waiting.setdefault(need, set()).add(tool)
        if graph.states and self.state not in graph.states:
            self.moves.append(Move(step, graph.initial))
        ready = [tool for tool, unmet in self._unmet.items() if not unmet or tool in self.used]
        return self._enable(ready, step)

    def use(self, tool: str, step: int) -> list[Enabled]:
        """Record the use of a tool; return the tools enabled from a step on."""
        self._move(tool, step)
        if tool in self.used:
            return []
        self.used[tool] = step
        # A tool that was used although disabled is available, so it counts as enabled.
        ready = {tool} if tool in self._unmet else set()
        for need in [one for one in self._waiting if _meets(tool, one)]:
            for other in self._waiting.pop(need):
                unmet = self._unmet[other]
                unmet.discard(need)
                if not unmet:
                    ready.add(other)
        return self._enable([one for one in self.graph.needs if one in ready], step)

    def _enable(self, tools: Sequence[str], step: int) -> list[Enabled]:
        made = []
        for tool in tools:
            by = [tool]
            if not self._unmet[tool]:
                by = [self._by(need) or "" for need in self.graph.needs[tool]]
            for need in self._unmet.pop(tool):
                self._waiting.get(need, set()).discard(tool)
            self.enabled[tool] = Enabled(tool, step, tuple(dict.fromkeys(by)))
            made.append(self.enabled[tool])
        return made

    def _by(self, need: str) -> str | None:
        """Return the tool that first met a need."""
        if need in self.used:
            return need
        if need == LEAST_ONE or need.endswith(GROUP):
            return next((tool for tool in self.used if _meets(tool, need)), None)
        return None

    def _move(self, tool: str, step: int) -> None:
        after = self.graph.after
        # The longest matching group wins, independent of storage order.
        groups = [one for one in after if matches(one, tool)]
        name = tool if tool in after else max(groups, key=len, default="")
        if name and after[name] != self.state:
            self.moves.append(Move(step, after[name], tool))

    @property
    def state(self) -> str:
        """The current state; empty without states."""
        return self.moves[-1].state if self.moves else ""

    def state_at(self, step: int) -> str:
        """Return the state at a step."""
        return next((one.state for one in reversed(self.moves) if one.step <= step), "")

    def is_enabled(self, tool: str, step: int) -> bool:
        """Return whether a tool is enabled at a step; tools outside the graph always are."""
        if tool not in self.graph.needs:
            return True
        one = self.enabled.get(tool)
        return one is not None and one.step <= step

    def allows(self, tool: str, step: int) -> bool:
        """Return whether a tool may be used at a step: enabled, and allowed by the state."""
        patterns = self.graph.states.get(self.state_at(step)) if self.graph.states else None
        free = patterns is None or any(matches(one, tool) for one in patterns)
        return free and self.is_enabled(tool, step)

    def listed(self, tools: Sequence[str], step: int) -> list[str]:
        """Return the tools to send at a step, in order of definition.

        All of them if a mask restricts them; otherwise the enabled ones, newly enabled tools last,
        so that each list begins with the list of the step before.
        """
        if self.graph.sends == "all":
            return list(tools)
        standing = [tool for tool in tools if self.is_enabled(tool, step)]
        return sorted(standing, key=lambda tool: self._since(tool))

    def _since(self, tool: str) -> int:
        one = self.enabled.get(tool) if tool in self.graph.needs else None
        return one.step if one is not None and one.by else 0


@dataclass(frozen=True, slots=True)
class ListCost:
    """What sending only enabled tools saves and costs over steps 1 to n, compared with sending all.

    `less` is the number of tokens not sent, summed over the steps; `changes` the steps at which the
    list differs from the step before; `rewritten` the cached tokens that are written again because
    of that: tools come first, so it is the whole prompt. None if the size of a prompt is unknown. A
    mask does not change the prefix: its `less` and `rewritten` are 0.
    """

    less: int
    changes: tuple[int, ...]
    rewritten: int | None


def list_cost(
    enabling: Enabling,
    sizes: Mapping[str, int],
    prompts: Sequence[int | None],
    *,
    shortened: bool = False,
) -> ListCost:
    """Compute the cost of a growing tool list.

    `sizes` are tokens of definitions, `prompts` those of the prompts from step 1 on, including all
    tools unless they were `shortened` already.
    """
    hidden = [tool for tool in sizes if tool in enabling.graph.needs]
    less, changes = 0, []
    rewritten: int | None = 0
    out = sum(sizes[tool] for tool in hidden)
    comes: dict[int, int] = {}
    for tool in hidden:
        if tool in enabling.enabled:
            step = enabling.enabled[tool].step
            comes[step] = comes.get(step, 0) + sizes[tool]
    for step in range(1, len(prompts) + 1):
        before = out
        out -= comes.get(step, 0)
        less += out
        if step > 1 and step in comes:
            changes.append(step)
            prompt = prompts[step - 2]
            sent = None if prompt is None else max(prompt - (0 if shortened else before), 0)
            rewritten = None if rewritten is None or sent is None else rewritten + sent
    return ListCost(less, tuple(changes), rewritten)


Stored = dict[str, list[list[object]]]


def stored(enabling: Enabling) -> Stored:
    """Serialize an enabling without its graph, as lists, since stores may reorder objects."""
    return {
        "used": [[tool, step] for tool, step in enabling.used.items()],
        "enabled": [[one.tool, one.step, list(one.by)] for one in enabling.enabled.values()],
        "moves": [list(one) for one in enabling.moves],
    }


def restored(graph: ToolGraph, given: Mapping[str, Sequence[Sequence[object]]]) -> Enabling:
    """Restore an enabling from `stored` under its graph."""
    made = Enabling(
        used={str(tool): _whole(step) for tool, step in given.get("used", ())},
        moves=[Move(_whole(step), str(to), str(by)) for step, to, by in given.get("moves", ())],
    )
    for tool, step, by in given.get("enabled", ()):
        names = tuple(map(str, by)) if isinstance(by, list) else ()
        made.enabled[str(tool)] = Enabled(str(tool), _whole(step), names)
    made.register(graph, 1)
    return made


def _whole(number: object) -> int:
    return number if isinstance(number, int) else 0
