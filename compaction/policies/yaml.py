"""Policies as YAML, with the origin of each setting as a comment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from compaction.policies.origin import Document, Origin, origins
from compaction.policies.policy import SETTINGS

LONGEST = 64 * 1024
"""Maximum bytes of a text; the presets take under 3 kB."""
DEEPEST = 8
"""Maximum levels of nesting; a policy has five."""
_BREAKS = re.compile("[\n\x85\u2028\u2029]")
_WIDE = 100
_COMMENT = 44
"""Column of comments, if the value is short enough."""


class UnreadablePolicy(ValueError):
    """A text that is not a policy in YAML or JSON; `line` counts from 1, None if unknown."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem if line is None else f"line {line}: {problem}")
        self.problem, self.line = problem, line


@dataclass(frozen=True, slots=True)
class Reading:
    """A parsed text, not validated yet. `document` lacks what the text leaves out."""

    based_on: str = ""
    document: dict[str, Any] = field(default_factory=dict)


def written(document: Document, based_on: str = "", base: Document | None = None) -> str:
    """Write a policy as YAML, every setting with its origin (see `origins`).

    `base` is the document of the preset `based_on`. Reading it again gives the same document.
    """
    came = origins(document, base)
    lines = [f"name: {_scalar(document.get('name', ''))}"]
    if based_on:
        lines.append(f"based_on: {_scalar(based_on)}")
    if document.get("version", 1) != 1:
        lines.append(f"version: {_scalar(document['version'])}")
    for name, value in SETTINGS.items():
        lines += _line("", name, document.get(name, value), came.get(name))
    lines += _steps(document, came)
    recite = document.get("recite")
    if recite is None:
        lines += _line("", "recite", None, came.get("recite"))
    else:
        lines.append(_commented("recite:", came.get("recite")))
        lines += _parameters("  ", recite, "recite", came)
    return "\n".join(lines) + "\n"


def _steps(document: Document, came: Mapping[str, Origin]) -> Iterator[str]:
    steps = document.get("steps", [])
    yield "steps:" if steps else _commented("steps: []", came.get("steps"))
    for index, step in enumerate(steps):
        where = f"steps[{index}]"
        yield _commented(f"  - strategy: {_scalar(step['strategy'])}", came.get(where))
        given = step.get("parameters", {})
        yield "    parameters:" if given else "    parameters: {}"
        yield from _parameters("      ", given, f"{where}.parameters", came)


def _parameters(
    indent: str, given: Document, where: str, came: Mapping[str, Origin]
) -> Iterator[str]:
    for name, value in given.items():
        yield from _line(indent, name, value, came.get(f"{where}.{name}"))


def _line(indent: str, name: str, value: Any, origin: Origin | None) -> Iterator[str]:
    text = f"{indent}{_scalar(name)}: {_scalar(value)}"
    if len(text) <= _WIDE or not isinstance(value, list):
        yield _commented(text, origin)
        return
    yield _commented(f"{indent}{_scalar(name)}:", origin)
    yield from (f"{indent}  - {_scalar(one)}" for one in value)


def _scalar(value: Any) -> str:
    """Write a text, number or list on one line, quoted if YAML would read it differently."""
    text = _dumped(value, None)
    return _dumped(value, '"') if _BREAKS.search(text) else text


def _dumped(value: Any, style: str | None) -> str:
    stated = yaml.dump(
        [value],
        Dumper=_Dumper,
        default_flow_style=True,
        default_style=style,
        width=float("inf"),
        allow_unicode=True,
    )
    return stated.strip()[1:-1]


def _commented(text: str, origin: Origin | None) -> str:
    return text if origin is None else f"{text.ljust(_COMMENT)}  # {origin}"


def read(text: str) -> Reading:
    """Parse a text in YAML or JSON. Raises Unreadable.

    YAML is read as version 1.2, so that a tool may be called `no`. Anchors, aliases, tags and
    duplicate keys are refused: policies do not need them, and some are attacks.
    """
    if len(text.encode("utf-8", "replace")) > LONGEST:
        raise UnreadablePolicy(f"is longer than {LONGEST // 1024} kB")
    try:
        found = yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader, with less
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise UnreadablePolicy(
            str(error.problem or error), mark.line + 1 if mark else None
        ) from None
    except (yaml.YAMLError, ValueError) as error:
        raise UnreadablePolicy(f"is neither YAML nor JSON: {str(error).splitlines()[0]}") from None
    if not isinstance(found, dict):
        names = ", ".join(("name", *SETTINGS, "steps", "recite"))
        raise UnreadablePolicy(f"must be an object: {names}")
    based_on = found.pop("based_on", None)
    if based_on is not None and not isinstance(based_on, str):
        raise UnreadablePolicy("based_on must be the name of a preset")
    return Reading(based_on or "", found)


class _Dumper(yaml.SafeDumper):
    """Quotes what YAML 1.1 reads differently, and numbers that only 1.2 knows."""

    yaml_implicit_resolvers: Any = dict(yaml.SafeDumper.yaml_implicit_resolvers)


_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9.]+[eE][-+]?[0-9]+$"), list("-+.0123456789")
)


class _Loader(yaml.SafeLoader):
    """Plain values only: no aliases, tags or duplicate keys, nested no deeper than a policy."""

    yaml_implicit_resolvers: Any = {}
    _deep = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise _refused("anchors and aliases are not allowed", event)
        if getattr(event, "tag", None) is not None:
            raise _refused("tags are not allowed", event)
        if self._deep == DEEPEST:
            raise _refused(f"is nested deeper than {DEEPEST} levels", event)
        self._deep += 1
        node = super().compose_node(parent, index)
        self._deep -= 1
        return node

    def construct_scalar(self, node: Any) -> Any:
        # JSON writes characters beyond 16 bits as two surrogates; a single one is not text.
        value = super().construct_scalar(node)
        return value.encode("utf-16", "surrogatepass").decode("utf-16")

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            if name is None or key.tag != "tag:yaml.org,2002:str":
                raise _refused("a key must be text", key)
            if name in seen:
                raise _refused(f"{name} is set twice", key)
            seen.add(name)
        return dict(super().construct_mapping(node, deep))


def _refused(problem: str, at: Any) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, at.start_mark)


def _add_resolvers() -> None:
    """Resolve the values of YAML 1.2's core schema: those of JSON, and other number formats."""
    for tag, pattern, first in (
        ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
        ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
        ("int", r"^[-+]?(?:0|[1-9][0-9]{0,17})$", "-+0123456789"),
        (
            "float",
            r"^[-+]?(?:(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)$",
            "-+.0123456789",
        ),
    ):
        _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))


_add_resolvers()
