"""The settings of a policy for a form: path, range, default and help."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from compaction.policies.policy import MOST, SETTINGS, Policy
from compaction.recitation.recite import DOES, Recite
from compaction.strategies import STRATEGIES

Kind = Literal["int", "float", "bool", "choice", "words", "text"]


@dataclass(frozen=True, slots=True)
class Field:
    """One setting of a policy.

    `path` names it as InvalidPolicy does ("steps[2].parameters.age"). `low` and `high` are the
    range of a number, `choices` the allowed values of a choice; `words` is a list of texts. `help`
    is one sentence. `first`: shown without expanding.
    """

    path: str
    name: str
    kind: Kind
    value: Any
    low: float | None
    high: float | None
    choices: tuple[str, ...]
    default: Any
    help: str
    first: bool


def fields(policy: Policy) -> list[Field]:
    """Return every setting of a policy except its name, in order; recitation's only if enabled."""
    found = [_whole(name, policy) for name in SETTINGS]
    for index, step in enumerate(policy.steps):
        found += _valued(f"steps[{index}].parameters", step.parameters)
    return found + ([] if policy.recite is None else _valued("recite", policy.recite))


def parameters_of(strategy: str, where: str = "parameters") -> tuple[Field, ...]:
    """Return the settings of a strategy ("recite" for recitation) with their defaults.

    Raises KeyError for an unknown strategy.
    """
    form = Recite if strategy == "recite" else STRATEGIES[strategy].parameters
    return tuple(_valued(where, form()))


def about(strategy: str) -> str:
    """Return what a strategy ("recite" for recitation) does, in a sentence."""
    return DOES if strategy == "recite" else STRATEGIES[strategy].does


def _whole(name: str, policy: Policy) -> Field:
    """Return a setting of the policy as a whole."""
    one = next(one for one in dataclasses.fields(Policy) if one.name == name)
    hint = get_type_hints(Policy)[name]
    return _field(name, name, hint, getattr(policy, name), one.default, one.metadata)


def _valued(where: str, parameters: Any) -> list[Field]:
    return list(_fields(where, parameters))


def _fields(where: str, parameters: Any) -> Iterator[Field]:
    kinds = get_type_hints(type(parameters))
    chosen = any("first" in one.metadata for one in dataclasses.fields(parameters))
    for one in dataclasses.fields(parameters):
        default = None if one.default is dataclasses.MISSING else one.default
        value = getattr(parameters, one.name)
        path = f"{where}.{one.name}"
        says = {"first": not chosen, **one.metadata}
        yield _field(path, one.name, kinds[one.name], value, default, says)


def _field(
    path: str, name: str, hint: Any, value: Any, default: Any, says: Mapping[str, Any]
) -> Field:
    kind = _kind(hint)
    number = kind in ("int", "float")
    return Field(
        path=path,
        name=name,
        kind=kind,
        value=list(value) if kind == "words" else value,
        low=says.get("min", 0) if number else None,
        high=says.get("max", MOST if kind == "int" else 1.0) if number else None,
        choices=get_args(hint) if kind == "choice" else (),
        default=list(default) if kind == "words" else default,
        help=str(says.get("help", "")),
        first=says.get("first", True),
    )


def _kind(hint: Any) -> Kind:
    if get_origin(hint) is Literal:
        return "choice"
    if get_origin(hint) is tuple:
        return "words"
    kinds: dict[Any, Kind] = {int: "int", float: "float", bool: "bool", str: "text"}
    return kinds[hint]
