"""The settings of a policy for pages: place, range, default, and how they are worded."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from compaction.policies.policy import MOST, SETTINGS, Policy
from compaction.proposals.setting import Group
from compaction.recitation.recite import DOES, Recite
from compaction.strategies import STRATEGIES

Kind = Literal["int", "float", "bool", "choice", "words", "text"]

GROUPS: tuple[Group, ...] = get_args(Group)


@dataclass(frozen=True, slots=True)
class Field:
    """One setting of a policy.

    `path` names it as InvalidPolicy does ("steps[2].parameters.age"). `low` and `high` are the
    range of a number, `slider` that of its slider, `choices` the allowed values of a choice and
    `called` their names; `words` is a list of texts. `label`, `help`, `group`, `unit`, `zero`,
    `advanced` and `objective` are as in `compaction.proposals.setting`.
    """

    path: str
    name: str
    kind: Kind
    value: Any
    low: float | None
    high: float | None
    slider: tuple[float, float] | None
    choices: tuple[str, ...]
    called: Mapping[str, str]
    default: Any
    label: str
    help: str
    group: Group
    unit: str
    zero: str
    advanced: bool
    objective: str

    @property
    def is_share(self) -> bool:
        """Whether it is a share of at most 1, shown in percent."""
        return self.unit.startswith("%")

    @property
    def scale(self) -> int:
        """What a stored value is multiplied by where it is shown or entered."""
        return 100 if self.is_share else 1

    def entered(self, value: Any) -> str:
        """Return a number as it is entered: 70 for a share of 0.7."""
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return f"{value * self.scale:.12g}" if self.is_share and number else str(value)

    def in_words(self, value: Any) -> str:
        """Return a value as pages show it: "70 % full", "12 steps", "never", "yes"."""
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, (list, tuple)):
            return ", ".join(map(str, value)) or "none"
        if not isinstance(value, (int, float)):
            return self.called.get(value, str(value)) or "none"
        if not value and self.zero:
            return self.zero
        number = f"{value:,}" if isinstance(value, int) else f"{value * self.scale:,.10g}"
        unit = re.sub(r"s\b", "", self.unit, count=1) if value == 1 else self.unit
        return f"{number} {unit}".strip()


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


def field_of(strategy: str, name: str) -> Field | None:
    """Return a setting of a strategy ("" for the whole policy); None if this release has none."""
    if not strategy:
        return _whole(name, Policy("any")) if name in SETTINGS else None
    if strategy not in STRATEGIES and strategy != "recite":
        return None
    return next((one for one in parameters_of(strategy) if one.name == name), None)


def about(strategy: str) -> str:
    """Return what a strategy ("recite" for recitation) does, in a sentence."""
    return DOES if strategy == "recite" else STRATEGIES[strategy].does


def _whole(name: str, policy: Policy) -> Field:
    """Return a setting of the policy as a whole."""
    one = next(one for one in dataclasses.fields(Policy) if one.name == name)
    return _field(name, one, get_type_hints(Policy)[name], getattr(policy, name))


def _valued(where: str, parameters: Any) -> list[Field]:
    return list(_fields(where, parameters))


def _fields(where: str, parameters: Any) -> Iterator[Field]:
    kinds = get_type_hints(type(parameters))
    for one in dataclasses.fields(parameters):
        yield _field(f"{where}.{one.name}", one, kinds[one.name], getattr(parameters, one.name))


def _field(path: str, one: dataclasses.Field[Any], hint: Any, value: Any) -> Field:
    kind, says = _kind(hint), one.metadata
    number = kind in ("int", "float")
    default: Any = None if one.default is dataclasses.MISSING else one.default
    return Field(
        path=path,
        name=one.name,
        kind=kind,
        value=list(value) if kind == "words" else value,
        low=says.get("min", 0) if number else None,
        high=says.get("max", MOST if kind == "int" else 1.0) if number else None,
        slider=says.get("slider") if number else None,
        choices=get_args(hint) if kind == "choice" else (),
        called=says.get("choices", {}),
        default=list(default) if kind == "words" else default,
        label=says["label"],
        help=says["help"],
        group=says["group"],
        unit=says["unit"],
        zero=says.get("zero", ""),
        advanced=says.get("advanced", False),
        objective=says.get("objective", ""),
    )


def _kind(hint: Any) -> Kind:
    if get_origin(hint) is Literal:
        return "choice"
    if get_origin(hint) is tuple:
        return "words"
    kinds: dict[Any, Kind] = {int: "int", float: "float", bool: "bool", str: "text"}
    return kinds[hint]
