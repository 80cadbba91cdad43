"""Policies as data: which strategies run, in which order, with which numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from compaction.cache.economy import Lifetime, Objective
from compaction.recitation.recite import Recite
from compaction.strategies import STRATEGIES

MOST = 10_000_000
"""What a whole number may be where nothing else is said."""
STEPS = 40
"""Steps of a policy at most: each of them looks at the context before every model call."""
_WHOLE = {"name", "version", "objective", "lifetime", "reserve", "steps", "recite"}
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")


class InvalidPolicy(ValueError):
    """Stored policy data that cannot run; `field` names where, `problem` what is allowed."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field, self.problem = field, problem


@dataclass(frozen=True, slots=True)
class Step:
    """One strategy of a policy with its parameters, an instance of that strategy's dataclass."""

    strategy: str
    parameters: Any


@dataclass(frozen=True, slots=True)
class Policy:
    """A named list of steps, run in order before each model call.

    `reserve` are the tokens of the window that are kept free for the output, in windows that are
    large enough for it (see `kept_free`). `recite`: what is told again at the end of every
    context; None for nothing.
    """

    name: str
    version: int = 1
    steps: tuple[Step, ...] = ()
    reserve: int = field(
        default=0,
        metadata={
            "min": 0,
            "max": MOST,
            "help": "Tokens of the window that are kept free for the output, a quarter of it at "
            "most.",
        },
    )
    recite: Recite | None = None
    objective: Objective = field(
        default="cheap",
        metadata={
            "help": "What is to be little: dollars (cheap: edits wait until they pay) or tokens "
            "in the prompt (lean: edits come sooner)."
        },
    )
    lifetime: Lifetime = field(
        default="recorded",
        metadata={
            "help": "How long Anthropic is asked to keep cache entries: as the agent did, "
            "5 minutes, 1 hour, or mixed (1 hour for the system prompt)."
        },
    )

    @property
    def heeds_objective(self) -> bool:
        """Whether a step asks for the objective: `payback` alone does."""
        return any(step.strategy == "payback" for step in self.steps)

    def kept_free(self, window: int) -> int:
        """The reserve in a window, both in tokens: a quarter of it at most (ours), or a small
        window would be full before anything was said."""
        return min(self.reserve, window // 4)


def to_dict(policy: Policy) -> dict[str, Any]:
    """A policy as plain JSON values, every parameter written out."""
    return {
        "name": policy.name,
        "version": policy.version,
        "objective": policy.objective,
        "lifetime": policy.lifetime,
        "reserve": policy.reserve,
        "steps": [
            {"strategy": step.strategy, "parameters": _plain(asdict(step.parameters))}
            for step in policy.steps
        ],
        "recite": None if policy.recite is None else _plain(asdict(policy.recite)),
    }


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def from_dict(data: Mapping[str, Any]) -> Policy:
    """A policy from stored JSON; parameters left out take the strategy's defaults.

    Raises InvalidPolicy, which names the field, for anything unknown, missing or out of range.
    """
    if not isinstance(data, Mapping):
        raise InvalidPolicy("policy", "must be an object")
    _known(data, _WHOLE, "")
    name = data.get("name")
    if not isinstance(name, str) or not _is_text(name) or not name.strip():
        raise InvalidPolicy("name", "must be text that is not empty")
    steps = data.get("steps", [])
    if not isinstance(steps, (list, tuple)) or len(steps) > STEPS:
        raise InvalidPolicy("steps", f"must be a list of at most {STEPS}")
    return Policy(
        name=name,
        version=_whole(data.get("version", 1), "version", 1, 2**31 - 1),
        steps=tuple(_step(step, f"steps[{index}]") for index, step in enumerate(steps)),
        reserve=_whole(data.get("reserve", 0), "reserve", 0, MOST),
        recite=_recite(data.get("recite")),
        # What was stored before these were asked wanted to be cheap, and left lifetimes alone.
        objective=_value(data.get("objective", "cheap"), Objective, {}, "objective"),
        lifetime=_value(data.get("lifetime", "recorded"), Lifetime, {}, "lifetime"),
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
    """What is given for the fields of a dataclass of parameters; defaults are left to it."""
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
    """Whether it is text that every database takes: without NUL and halves of characters."""
    return isinstance(value, str) and not _NO_TEXT.search(value)


def _share(value: Any, where: str, low: float, high: float) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not low <= value <= high:
        raise InvalidPolicy(where, f"must be a number from {low} to {high}")
    return float(value)
