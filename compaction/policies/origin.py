"""The origin of each setting of a policy, inherited values, and changes between versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from compaction.policies.fields import Field, field_of
from compaction.policies.policy import SETTINGS

Origin = Literal["policy", "preset", "default"]

Document = Mapping[str, Any]
"""A policy as written by `to_dict`; older ones may have missing or extra keys."""

Key = tuple[str, int, str]
"""Identifies a setting independent of its step's place: strategy, index among steps of that
strategy (from 0), parameter."""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One difference; `path` is its current or last place, None a missing value.

    `field` is the setting; None for a step, and for settings of another release.
    """

    path: str
    name: str
    before: Any
    after: Any
    field: Field | None = field(default=None, compare=False)

    @property
    def label(self) -> str:
        """What pages call it."""
        return self.name if self.field is None else self.field.label

    @property
    def before_in_words(self) -> str:
        """The value before, as pages show it."""
        return self._in_words(self.before)

    @property
    def after_in_words(self) -> str:
        """The value after, as pages show it."""
        return self._in_words(self.after)

    def _in_words(self, value: Any) -> str:
        return str(value) if self.field is None else self.field.in_words(value)


def origins(document: Document, base: Document | None) -> dict[str, Origin]:
    """Return the origin of every setting by path, and of `steps`, each `steps[n]` and `recite`.

    `policy`: set by the team. `preset`: as in the base, and different from the strategy's default.
    `default`: not set anywhere. A step is compared with the step of the same strategy in the base,
    the second one with the second. Resolution order: Shannon, in docs/policies/policies.md.
    """
    theirs = {} if base is None else {key: value for key, _, value in _values(base)}
    found: dict[str, Origin] = {}
    for key, path, value in _values(document):
        usual = _usual(key)
        if value != theirs.get(key, usual):
            found[path] = "policy"
        else:
            found[path] = "default" if value == usual else "preset"
    _add_parts(found, document, base or {})
    return found


def _add_parts(found: dict[str, Origin], document: Document, base: Document) -> None:
    there = set(_names(base))
    for index, name in enumerate(_names(document)):
        found[f"steps[{index}]"] = "preset" if name in there else "policy"
    parts: dict[str, tuple[Any, Any]] = {
        "steps": (_names(document), _names(base)),
        "recite": (document.get("recite") is not None, base.get("recite") is not None),
    }
    for path, (ours, theirs) in parts.items():
        same: Origin = "preset" if ours else "default"
        found[path] = same if ours == theirs else "policy"


def filled(document: Document, base: Document | None) -> dict[str, Any]:
    """Fill a document with the steps and settings of its base that it leaves out.

    Nothing is validated here: an invalid document is left for `from_dict` to refuse.
    """
    if base is None:
        return dict(document)
    made = {**base, **document}
    if isinstance(made["steps"], list):
        theirs = dict(zip(_names(base), base["steps"], strict=True))
        named = zip(_names(made), made["steps"], strict=True)
        made["steps"] = [_filled_step(step, theirs.get(name)) for name, step in named]
    if isinstance(made["recite"], Mapping) and base["recite"] is not None:
        made["recite"] = {**base["recite"], **made["recite"]}
    return made


def _filled_step(step: Any, base: Any) -> Any:
    given = step.get("parameters", {}) if isinstance(step, Mapping) else None
    if base is None or not isinstance(given, Mapping):
        return step
    return {**step, "parameters": {**base["parameters"], **given}}


def keys_of(document: Document) -> dict[str, Key]:
    """Return the key of every setting by its path."""
    return {path: key for key, path, _ in _values(document)}


def changes(before: Document, after: Document) -> tuple[SettingChange, ...]:
    """Return the differences between two documents, in the order of the later one.

    An added or removed step is one change; so is another order of steps.
    """
    old = {key: (path, value) for key, path, value in _values(before)}
    found = [*_moved(_names(before), _names(after))]
    for key, path, value in _values(after):
        if key in old and old[key][1] != value:
            was, setting = old[key][1], field_of(key[0], key[2])
            found.append(SettingChange(path, _called(key), was, value, setting))
    recites = before.get("recite") is not None, after.get("recite") is not None
    if recites[0] != recites[1]:
        found.append(SettingChange("recite", "recite", *recites))
    return tuple(found)


def settings_in(document: Document) -> dict[Key, Any]:
    """Return every value by its key; the order of steps has the key ("", 0, "steps")."""
    found = {key: value for key, _, value in _values(document)}
    return {**found, ("", 0, "steps"): _names(document)}


def differing(before: Mapping[Key, Any], after: Mapping[Key, Any], most: int) -> list[Key]:
    """Return keys whose values differ, at most this many."""
    found: list[Key] = []
    for key in before.keys() | after.keys():
        if before.get(key) != after.get(key) or (key in before) != (key in after):
            found.append(key)
            if len(found) == most:
                break
    return found


def _moved(old: list[tuple[str, int]], new: list[tuple[str, int]]) -> Iterator[SettingChange]:
    for index, name in enumerate(old):
        if name not in new:
            yield SettingChange(f"steps[{index}]", _step(name), True, False)
    for index, name in enumerate(new):
        if name not in old:
            yield SettingChange(f"steps[{index}]", _step(name), False, True)
    both = [name for name in old if name in new], [name for name in new if name in old]
    if both[0] != both[1]:
        stated = [", ".join(_step(name) for name in names) for names in both]
        yield SettingChange("steps", "order of steps", stated[0], stated[1])


def _step(name: tuple[str, int]) -> str:
    return name[0] if name[1] == 0 else f"{name[0]} ({name[1] + 1})"


def _called(key: Key) -> str:
    return f"{_step((key[0], key[1]))} · {key[2]}" if key[0] else key[2]


def _values(document: Document) -> Iterator[tuple[Key, str, Any]]:
    for setting, usual in SETTINGS.items():
        yield ("", 0, setting), setting, document.get(setting, usual)
    for index, (name, step) in enumerate(zip(_names(document), _steps(document), strict=True)):
        given = step.get("parameters", {}) if isinstance(step, Mapping) else {}
        for parameter, value in given.items() if isinstance(given, Mapping) else ():
            yield (*name, parameter), f"steps[{index}].parameters.{parameter}", value
    for parameter, value in (document.get("recite") or {}).items():
        yield ("recite", 0, parameter), f"recite.{parameter}", value


def _steps(document: Document) -> list[Any]:
    steps = document.get("steps", [])
    return steps if isinstance(steps, list) else []


def _names(document: Document) -> list[tuple[str, int]]:
    """Return each step by its strategy and its index among steps of that strategy."""
    seen: dict[str, int] = {}
    names = []
    for step in _steps(document):
        name = str(step.get("strategy", "")) if isinstance(step, Mapping) else ""
        names.append((name, seen.get(name, 0)))
        seen[name] = seen.get(name, 0) + 1
    return names


def _usual(key: Key) -> Any:
    """Return the default of a setting; None if this release does not know it."""
    strategy, _, parameter = key
    if not strategy:
        return SETTINGS.get(parameter)
    found = field_of(strategy, parameter)
    return None if found is None else found.default
