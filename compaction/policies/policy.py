"""Policies as data: strategies in order, with their settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from compaction.cache.economy import Objective, TTLSetting
from compaction.proposals.setting import setting
from compaction.recitation.recite import Recite
from compaction.strategies import STRATEGIES

MOST = 10_000_000
"""Maximum of an integer without a range of its own."""
STEPS = 40
"""Maximum steps of a policy: each one examines the context before every model call."""
BOARD, TASK_BUDGET = 50_000, 10**12
"""Maximum tokens of a board in a context, and of a task's budget."""
ToolChoice = Literal["all", "habits"]
SETTINGS = {
    "objective": "cheap",
    "ttl": "recorded",
    "reserve": 0,
    "board": 0,
    "task_budget": 0,
    "tools": "all",
}
"""Settings of a policy as a whole, in order, with the values of policies stored before them."""
_WHOLE = {"name", "version", "steps", "recite", *SETTINGS}
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")


class InvalidPolicy(ValueError):
    """A policy that cannot run; `field` names the setting, `problem` the allowed values."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field, self.problem = field, problem


@dataclass(frozen=True, slots=True)
class Step:
    """One strategy of a policy and its settings, an instance of that strategy's dataclass."""

    strategy: str
    parameters: Any


@dataclass(frozen=True, slots=True)
class Policy:
    """A named list of steps, run in order before each model call.

    `reserve` is the number of tokens kept free for the output, in windows large enough for it (see
    `kept_free`). `board` is the maximum size of the task's board in a context, `task_budget` the
    limit of the budget that a task gets, both in tokens. `tools` are those that a session starts
    with. `recite` configures what is repeated at the end of every context; None for nothing.
    """

    name: str
    version: int = 1
    steps: tuple[Step, ...] = ()
    reserve: int = setting(
        0,
        "Keep free for the output",
        "Part of the window to keep free, at most a quarter of it.",
        "Limits",
        "tokens",
        between=(0, MOST),
        slider=(0, 64_000),
        zero="nothing",
    )
    board: int = setting(
        0,
        "Show the board with up to",
        "Shown after each summary and at the start of a task's next session.",
        "Memory",
        "tokens",
        between=(0, BOARD),
        slider=(0, 10_000),
        zero="never",
    )
    task_budget: int = setting(
        0,
        "Budget of a task",
        "Soft budget of all sessions of a task together, unless the team has one for tasks.",
        "Limits",
        "tokens",
        between=(0, TASK_BUDGET),
        advanced=True,
        slider=(0, 2_000_000),
        zero="none",
    )
    recite: Recite | None = None
    objective: Objective = setting(
        "cheap",
        "Optimize for",
        "For cost, edit only when it pays back; for context size, edit early.",
        "General",
        choices={"cheap": "cost", "lean": "context size"},
    )
    ttl: TTLSetting = setting(
        "recorded",
        "Cache TTL to request",
        "TTL to ask Anthropic for; 1 hour only if the agent does "
        "(Claude Code: ENABLE_PROMPT_CACHING_1H=1).",
        "Cache",
        choices={
            "recorded": "as the agent asks",
            "5m": "5 minutes",
            "1h": "1 hour",
            "mixed": "1 hour for the system prompt",
        },
    )
    tools: ToolChoice = setting(
        "all",
        "Start sessions with",
        "All tools, or only those used in any of the agent's newest 50 sessions.",
        "General",
        advanced=True,
        choices={"all": "all tools", "habits": "recently used tools"},
    )

    @property
    def heeds_objective(self) -> bool:
        """Whether the objective affects any step."""
        return any(STRATEGIES[step.strategy].heeds_objective for step in self.steps)

    def kept_free(self, window: int) -> int:
        """Return the reserve in a window, both in tokens.

        At most a quarter of it (our choice), or a small window would be full from the start.
        """
        return min(self.reserve, window // 4)


def to_dict(policy: Policy) -> dict[str, Any]:
    """Return a policy as plain JSON values, with every setting."""
    return {
        "name": policy.name,
        "version": policy.version,
        **{name: getattr(policy, name) for name in SETTINGS},
        "steps": [
            {"strategy": step.strategy, "parameters": _plain(asdict(step.parameters))}
            for step in policy.steps
        ],
        "recite": None if policy.recite is None else _plain(asdict(policy.recite)),
    }


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def from_dict(data: Mapping[str, Any]) -> Policy:
    """Build a policy from stored JSON; missing settings get the strategy's defaults.

    Raises InvalidPolicy, which names the field, for anything unknown, missing or out of range.
    """
    if not isinstance(data, Mapping):
        raise InvalidPolicy("policy", "must be an object")
    _known(data, _WHOLE, "")
    name = data.get("name")
    if not isinstance(name, str) or not _is_text(name) or not name.strip():
        raise InvalidPolicy("name", "must be a non-empty text")
    steps = data.get("steps", [])
    if not isinstance(steps, (list, tuple)) or len(steps) > STEPS:
        raise InvalidPolicy("steps", f"must be a list of at most {STEPS}")
    whole = {**SETTINGS, **data}
    return Policy(
        name=name,
        version=_whole(data.get("version", 1), "version", 1, 2**31 - 1),
        steps=tuple(_step(step, f"steps[{index}]") for index, step in enumerate(steps)),
        reserve=_whole(whole["reserve"], "reserve", 0, MOST),
        board=_whole(whole["board"], "board", 0, BOARD),
        task_budget=_whole(whole["task_budget"], "task_budget", 0, TASK_BUDGET),
        recite=_recite(data.get("recite")),
        objective=_value(whole["objective"], Objective, {}, "objective"),
        ttl=_value(whole["ttl"], TTLSetting, {}, "ttl"),
        tools=_value(whole["tools"], ToolChoice, {}, "tools"),
    )


def _recite(given: Any) -> Recite | None:
    return None if given is None else Recite(**_values(Recite, given, "recite"))


def _known(data: Mapping[str, Any], allowed: set[str], where: str) -> None:
    for key in data:
        if key not in allowed:
            names = ", ".join(sorted(allowed))
            raise InvalidPolicy(f"{where}{key}", f"unknown; allowed are {names}")


def _whole(value: Any, where: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidPolicy(where, f"must be a whole number from {low} to {high}")
    return value


def _step(data: Any, where: str) -> Step:
    if not isinstance(data, Mapping):
        raise InvalidPolicy(where, "must be an object")
    _known(data, {"strategy", "parameters"}, f"{where}.")
    name = data.get("strategy")
    if not isinstance(name, str) or name not in STRATEGIES:
        raise InvalidPolicy(f"{where}.strategy", f"must be one of {', '.join(STRATEGIES)}")
    form = STRATEGIES[name].parameters
    return Step(name, form(**_values(form, data.get("parameters", {}), f"{where}.parameters")))


def _values(form: type[Any], given: Any, where: str) -> dict[str, Any]:
    """Validate the settings given for a dataclass; defaults are left to it."""
    if not isinstance(given, Mapping):
        raise InvalidPolicy(where, "must be an object")
    _known(given, {one.name for one in fields(form)}, f"{where}.")
    kinds = get_type_hints(form)
    values = {}
    for one in fields(form):
        place = f"{where}.{one.name}"
        if one.name in given:
            values[one.name] = _value(given[one.name], kinds[one.name], one.metadata, place)
        elif one.default is MISSING:
            raise InvalidPolicy(place, "is missing")
    return values


def _value(value: Any, kind: Any, limits: Mapping[str, Any], where: str) -> Any:
    if kind is int:
        return _whole(value, where, limits.get("min", 0), limits.get("max", MOST))
    if kind is float:
        return _share(value, where, limits.get("min", 0.0), limits.get("max", 1.0))
    if get_origin(kind) is Literal:
        allowed = get_args(kind)
        if value not in allowed:
            raise InvalidPolicy(where, f"must be one of {', '.join(map(str, allowed))}")
        return value
    if get_origin(kind) is tuple:
        if not isinstance(value, (list, tuple)) or not all(_is_text(one) for one in value):
            raise InvalidPolicy(where, "must be a list of texts")
        return tuple(value)
    if kind is bool and not isinstance(value, bool):
        raise InvalidPolicy(where, "must be true or false")
    if kind is str and not _is_text(value):
        raise InvalidPolicy(where, "must be text")
    return value


def _is_text(value: Any) -> bool:
    """Return whether a text fits into every database: without NUL and lone surrogates."""
    return isinstance(value, str) and not _NO_TEXT.search(value)


def _share(value: Any, where: str, low: float, high: float) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not low <= value <= high:
        raise InvalidPolicy(where, f"must be a number from {low} to {high}")
    return float(value)
