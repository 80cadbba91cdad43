"""Policy drafts: parse them from a form or YAML, and collect problems."""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from compaction.policies.fields import Field, fields, parameters_of
from compaction.policies.origin import filled
from compaction.policies.policy import STEPS, InvalidPolicy, Policy, from_dict, to_dict
from compaction.policies.presets import PRESETS
from compaction.policies.yaml import UnreadablePolicy, read
from compaction.strategies import STRATEGIES
from sessions.models.policies.policy_documents import preset_document

_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,18}\s*")
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\s*")
_PLACE = re.compile(r"steps\[(\d+)\]\.parameters\.(\w+)|recite\.(\w+)|(\w+)")
_UNNAMED = "unnamed"


@dataclass(slots=True)
class Draft:
    """A draft as entered so far. `document` may be incomplete or invalid; missing values come from
    the base.

    `seen` is the number of the newest version when the page was rendered. `problems` are keyed by
    path, or `name`, `note` and `yaml` for those fields.
    """

    name: str = ""
    based_on: str = ""
    note: str = ""
    seen: int = 0
    document: dict[str, Any] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    yaml: str = ""
    """Pasted text that cannot be parsed."""
    focus: str = ""
    """Path of the setting to show first."""

    def policy(self) -> tuple[Policy, dict[str, Any]]:
        """The policy as far as it is valid, and the invalid inputs by path.

        Each invalid value is added to `problems` and replaced by the base's value.
        """
        base = preset_document(self.based_on)
        given: dict[str, Any] = {}
        rest = {**deepcopy(self.document), "name": self.name.strip() or _UNNAMED, "version": 1}
        while True:
            try:
                return from_dict(filled(rest, base)), given
            except InvalidPolicy as error:
                self.problems.setdefault(error.field, error.problem)
                taken = _take_out(rest, error.field)
                if taken is None:  # not a single value: start again from the base
                    rest = {"name": _UNNAMED}
                else:
                    given[error.field] = taken[0]


def _take_out(document: dict[str, Any], path: str) -> tuple[Any] | None:
    """Remove and return the value at a path; None if it cannot be removed alone."""
    place = _PLACE.fullmatch(path)
    if place is None:
        return None
    step, parameter, recited, top = place.groups()
    if top is not None:
        holder, name = document, top
    elif recited is not None:
        holder, name = document["recite"], recited
    else:
        holder, name = document["steps"][int(step)]["parameters"], parameter
    if name == "name":
        taken, document["name"] = document["name"], _UNNAMED
        return (taken,)
    return (holder.pop(name),) if name in holder else None


def draft_of(document: dict[str, Any], name: str, based_on: str, seen: int = 0) -> Draft:
    """A draft that starts from a version's document."""
    return Draft(name=name, based_on=based_on, seen=seen, document=deepcopy(document))


def typed(post: QueryDict) -> Draft:
    """Parse the draft from a submitted form."""
    based_on = post.get("based_on", "")
    seen = post.get("seen", "")
    draft = Draft(
        name=post.get("name", "").strip(),
        based_on=based_on if based_on in PRESETS else "",
        note=post.get("note", "").replace("\x00", ""),
        seen=int(seen) if re.fullmatch("[0-9]{1,9}", seen) else 0,
    )
    steps = []
    for index, strategy in enumerate(post.getlist("step")):
        if strategy in STRATEGIES:
            where = f"steps[{index}].parameters"
            steps.append({"strategy": strategy, "parameters": _values(post, strategy, where)})
    draft.document = {"steps": steps}
    for one in fields(Policy("whole")):
        if (value := _value(post, one, one.path)) is not None:
            draft.document[one.name] = value
    recites = post.getlist("recite")[-1:] == ["true"]
    draft.document["recite"] = _values(post, "recite", "recite") if recites else None
    return draft


def _values(post: QueryDict, strategy: str, where: str) -> dict[str, Any]:
    found = {}
    for one in parameters_of(strategy, where):
        value = _value(post, one, one.path)
        if value is not None:
            found[one.name] = value
    return found


def _value(post: QueryDict, one: Field, name: str) -> Any:
    """Parse a field's input into a value if possible; None for an empty number, which then comes
    from the base."""
    given = post.getlist(name)
    if not given:
        return None
    return read_value(one, given[-1].replace("\r\n", "\n"))


def read_value(one: Field, text: str) -> Any:
    """Parse a value as entered in the form if possible; None for an empty number."""
    if one.kind == "bool":
        return text == "true"
    if one.kind == "words":
        return [line.strip() for line in text.split("\n") if line.strip()]
    if one.kind == "text":
        return text.strip()
    if one.kind == "choice":
        return text
    if not text.strip():
        return None
    if one.kind == "float":
        # 12 digits, so that 7 % is stored as 0.07.
        return round(float(text) / one.scale, 12) if _NUMBER.fullmatch(text) else text
    return int(text) if _WHOLE.fullmatch(text) else text


def change(draft: Draft, act: str, strategy: str = "") -> None:
    """Add, remove or move a step: "add" with a strategy, "remove:2", "up:2", "down:2"."""
    steps: list[Any] = draft.document["steps"]
    verb, _, place = act.partition(":")
    if verb == "add":
        if strategy in STRATEGIES and len(steps) < STEPS:
            steps.append({"strategy": strategy, "parameters": {}})
        return
    index = int(place) if re.fullmatch("[0-9]{1,3}", place) else -1
    if not 0 <= index < len(steps):
        return
    if verb == "remove":
        del steps[index]
    other = {"up": index - 1, "down": index + 1}.get(verb, -1)
    if 0 <= other < len(steps):
        steps[index], steps[other] = steps[other], steps[index]


def take_over(draft: Draft, text: str, *, rename: bool) -> None:
    """Replace the draft by YAML or JSON; an invalid text leaves it unchanged.

    `rename` also takes the name from the text. Does not raise: errors are added to `problems`.
    """
    try:
        found = read(text)
    except UnreadablePolicy as error:
        draft.yaml, draft.problems["yaml"] = text, f"Cannot be parsed: {error}."
        return
    named = found.document.pop("name", draft.name)
    based_on = found.based_on or draft.based_on
    if based_on and based_on not in PRESETS:
        known = ", ".join(PRESETS)
        draft.yaml, draft.problems["yaml"] = text, f"based_on must be one of {known}."
        return
    try:
        value = from_dict({**filled(found.document, preset_document(based_on)), "name": _UNNAMED})
    except InvalidPolicy as error:
        draft.yaml, draft.problems["yaml"] = text, f"Not a valid policy: {error}."
        return
    draft.based_on, draft.document = based_on, to_dict(value)
    if rename and isinstance(named, str):
        draft.name = named
