"""The values of a policy as pages show them: section by section, each with what is said of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compaction.policies.fields import Field, about, fields
from compaction.policies.lint import Remark
from compaction.policies.origin import Document, Origin, origins
from compaction.policies.policy import Policy, to_dict

MANY = 8
"""More words than this are folded away."""


@dataclass(frozen=True, slots=True)
class Row:
    """One value. `shown` is what a field holds, which need not be a value that may be."""

    field: Field
    shown: Any
    origin: Origin
    remarks: list[Remark]
    problem: str = ""

    @property
    def id(self) -> str:
        """For the page: the path without what an id may not hold."""
        return id_of(self.field.path)

    @property
    def words(self) -> str:
        """Words as a text area holds them, one a line."""
        return "\n".join(self.shown) if isinstance(self.shown, list) else str(self.shown)

    @property
    def many(self) -> bool:
        """Whether there are more words than a line holds."""
        return isinstance(self.shown, list) and len(self.shown) > MANY

    @property
    def height(self) -> int:
        """Lines of a text area that holds it."""
        return max(2, min(self.words.count("\n") + 2, 8))


@dataclass(frozen=True, slots=True)
class Section:
    """A step with its values; also the policy as a whole (no strategy), and recitation."""

    path: str
    strategy: str
    about: str
    origin: Origin
    rows: list[Row]
    remarks: list[Remark] = field(default_factory=list)
    index: int = -1

    @property
    def id(self) -> str:
        """For the page."""
        return id_of(self.path)


@dataclass(frozen=True, slots=True)
class Told:
    """What is said of the values of a policy, by their paths.

    `given` is what was typed where that is no value, `problems` say why not.
    """

    base: Document | None
    remarks: tuple[Remark, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)

    def of(self, path: str) -> list[Remark]:
        """The remarks on one value."""
        return [one for one in self.remarks if one.path == path]


def id_of(path: str) -> str:
    """ "steps[2].parameters.age" as "steps-2-parameters-age"."""
    return re.sub(r"[^a-z0-9_]+", "-", path.lower()).strip("-")


def sections(policy: Policy, told: Told) -> list[Section]:
    """The policy as a whole, each step, and recitation where there is any."""
    came = origins(to_dict(policy), told.base)
    rows: dict[str, list[Row]] = {}
    for one in fields(policy):
        holder = one.path.partition(".")[0]
        rows.setdefault(holder, []).append(
            Row(
                one,
                told.given.get(one.path, one.value),
                came[one.path],
                told.of(one.path),
                told.problems.get(one.path, ""),
            )
        )
    own = [*rows["objective"], *rows["lifetime"], *rows["reserve"]]
    whole = Section("steps", "", "", came["steps"], own, told.of("steps"))
    made = [whole]
    for index, step in enumerate(policy.steps):
        path = f"steps[{index}]"
        made.append(
            Section(
                path,
                step.strategy,
                about(step.strategy),
                came[path],
                rows.get(path, []),
                told.of(path),
                index,
            )
        )
    if policy.recite is not None:
        made.append(Section("recite", "recite", about("recite"), came["recite"], rows["recite"]))
    return made
