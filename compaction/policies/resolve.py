"""Resolve a session's policy: request, policy, preset, environment, default; the first one wins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

from compaction.policies.fields import Field, parameters_of
from compaction.policies.origin import Document, origins
from compaction.policies.policy import InvalidPolicy, from_dict, to_dict
from compaction.strategies import STRATEGIES

Source = Literal["request", "policy", "preset", "environment", "default"]

PREFIX = "CONTEXTLAB_POLICY__"
MOST_KEYS = 100

_PATH = re.compile(r"steps\[(\d{1,2})\]\.parameters\.(\w+)")
_WHOLE = {"1": True, "true": True, "yes": True, "on": True}
_NONE = {"0": False, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Resolved:
    """A complete policy document, and the source of every value by path."""

    document: dict[str, Any]
    sources: dict[str, Source]


def resolve(
    document: Document,
    base: Document | None,
    environment: Mapping[str, Any],
    asked: Mapping[str, Any],
    *,
    named: bool = False,
) -> Resolved:
    """Return what a session runs under: `asked` wins, the environment fills what is not set.

    Keys are "strategy.parameter" (every step of that strategy), "recite.parameter", the name of a
    setting of the whole policy, or a path ("steps[2].parameters.age"). `named`: the request named
    this policy, so its own values count as requested. Requested keys must exist; the environment
    applies only to existing steps. Raises InvalidPolicy with the invalid key.
    """
    made = deepcopy(dict(document))
    sources: dict[str, Source] = dict(origins(document, base))
    if named:
        sources = {path: "request" if one == "preset" else one for path, one in sources.items()}
    for key, value in environment.items():
        for path in paths_of(made, key):
            if sources.get(path) == "default":
                _set(made, path, value)
                sources[path] = "environment"
    for key, value in asked.items():
        found = paths_of(made, key)
        if not found:
            raise InvalidPolicy(key, "is not a setting of this policy")
        for path in found:
            _set(made, path, value)
            sources[path] = "request"
            _check(made, key)
    return Resolved(to_dict(from_dict(made)), sources)


def _check(document: Document, key: str) -> None:
    try:
        from_dict(document)
    except InvalidPolicy as error:
        raise InvalidPolicy(key, error.problem) from None


def paths_of(document: Document, key: str) -> list[str]:
    """Return the paths that a key covers in a document; empty if it covers none."""
    steps = document.get("steps") or []
    if found := _PATH.fullmatch(key):
        here = int(found[1]) < len(steps) and found[2] in steps[int(found[1])]["parameters"]
        return [key] if here else []
    strategy, _, parameter = key.partition(".")
    if not parameter:
        plain = key in document and key not in ("name", "version", "steps", "recite")
        return [key] if plain else []
    if strategy == "recite":
        return [key] if parameter in (document.get("recite") or {}) else []
    return [
        f"steps[{index}].parameters.{parameter}"
        for index, step in enumerate(steps)
        if step["strategy"] == strategy and parameter in step["parameters"]
    ]


def with_value(document: Document, path: str, value: Any) -> dict[str, Any]:
    """Return a copy of a document with another value at an existing path."""
    made = deepcopy(dict(document))
    _set(made, path, value)
    return made


def _set(document: dict[str, Any], path: str, value: Any) -> None:
    if found := _PATH.fullmatch(path):
        document["steps"][int(found[1])]["parameters"][found[2]] = value
    elif path.startswith("recite."):
        document["recite"][path.removeprefix("recite.")] = value
    else:
        document[path] = value


def from_environment(variables: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return values by key, and problems by variable name.

    CONTEXTLAB_POLICY__COMPACT__TRIGGER=0.8 is `compact.trigger`, CONTEXTLAB_POLICY__RESERVE the
    reserve; lists are separated by commas. An empty variable is ignored.
    """
    values: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for name in sorted(variables):
        text = variables[name].strip()
        if not name.startswith(PREFIX) or not text:
            continue
        strategy, _, parameter = name.removeprefix(PREFIX).lower().partition("__")
        try:
            key, value = _read(strategy, parameter, text)
        except InvalidPolicy as error:
            wrong[name] = error.problem
        else:
            values[key] = value
    return values, wrong


def _read(strategy: str, parameter: str, text: str) -> tuple[str, Any]:
    if not parameter:
        value: Any = int(text) if text.isdecimal() and len(text) < 19 else text
        from_dict({"name": "environment", strategy: value})
        if strategy in ("name", "version", "steps", "recite"):
            raise InvalidPolicy(strategy, "cannot be set here")
        return strategy, value
    if strategy != "recite" and strategy not in STRATEGIES:
        names = ", ".join(["recite", *STRATEGIES])
        raise InvalidPolicy(strategy, f"there is no strategy {strategy}; use one of {names}")
    fields = {one.name: one for one in parameters_of(strategy)}
    if parameter not in fields:
        names = ", ".join(fields)
        raise InvalidPolicy(parameter, f"{strategy} has no {parameter}; use one of {names}")
    value = _value(fields[parameter], text)
    given = {parameter: value}
    recite = given if strategy == "recite" else None
    steps = [] if recite is not None else [{"strategy": strategy, "parameters": given}]
    from_dict({"name": "environment", "steps": steps, "recite": recite})
    return f"{strategy}.{parameter}", value


def _value(one: Field, text: str) -> Any:
    if one.kind == "words":
        return [word.strip() for word in text.split(",") if word.strip()]
    if one.kind == "bool":
        return (_WHOLE | _NONE).get(text.lower(), text)
    if one.kind in ("int", "float"):
        try:
            return int(text) if one.kind == "int" else float(text)
        except ValueError:
            return text
    return text
