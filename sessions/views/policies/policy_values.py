"""Policy values for pages, in sections, with remarks and problems."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compaction.policies.fields import Field, about, fields
from compaction.policies.origin import Document, Origin, origins
from compaction.policies.policy import SETTINGS, Policy, to_dict
from compaction.proposals.strategy import Remark

MANY = 8
"""Longest word list that is shown unfolded."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One value. `shown` is the content of its field, which may be invalid."""

    field: Field
    shown: Any
    origin: Origin
    remarks: list[Remark]
    problem: str = ""

    @property
    def id(self) -> str:
        """The path as an HTML id."""
        return id_of(self.field.path)

    @property
    def range(self) -> str:
        """The allowed range of a number, in the unit in which it is entered."""
        return f"{self.field.low:,g} to {self.field.high:,g}"

    @property
    def in_words(self) -> str:
        """The value as pages show it, with its unit."""
        return self.field.in_words(self.shown)

    @property
    def words(self) -> str:
        """A word list as text, one per line."""
        return "\n".join(self.shown) if isinstance(self.shown, list) else str(self.shown)

    @property
    def many(self) -> bool:
        """Whether the word list is folded."""
        return isinstance(self.shown, list) and len(self.shown) > MANY

    @property
    def height(self) -> int:
        """Number of lines of its text area."""
        return max(2, min(self.words.count("\n") + 2, 8))


@dataclass(frozen=True, slots=True)
class SettingSection:
    """A step with its values; also the whole policy (no strategy), and recitation."""

    path: str
    strategy: str
    about: str
    origin: Origin
    rows: list[SettingRow]
    remarks: list[Remark] = field(default_factory=list)
    index: int = -1

    @property
    def id(self) -> str:
        """The path as an HTML id."""
        return id_of(self.path)


@dataclass(frozen=True, slots=True)
class SettingTexts:
    """What to show with the values of a policy, by path.

    `given` holds invalid inputs, `problems` why they are invalid.
    """

    base: Document | None
    remarks: tuple[Remark, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)

    def of(self, path: str) -> list[Remark]:
        """The remarks on one value."""
        return [one for one in self.remarks if one.path == path]


def id_of(path: str) -> str:
    """Convert "steps[2].parameters.age" to "steps-2-parameters-age"."""
    return re.sub(r"[^a-z0-9_]+", "-", path.lower()).strip("-")


def sections(policy: Policy, texts: SettingTexts) -> list[SettingSection]:
    """The whole policy, each step, and recitation if enabled."""
    came = origins(to_dict(policy), texts.base)
    rows: dict[str, list[SettingRow]] = {}
    for one in fields(policy):
        holder = one.path.partition(".")[0]
        rows.setdefault(holder, []).append(
            SettingRow(
                one,
                texts.given.get(one.path, one.value),
                came[one.path],
                texts.of(one.path),
                texts.problems.get(one.path, ""),
            )
        )
    own = [row for one in SETTINGS for row in rows[one]]
    whole = SettingSection("steps", "", "", came["steps"], own, texts.of("steps"))
    made = [whole]
    for index, step in enumerate(policy.steps):
        path = f"steps[{index}]"
        made.append(
            SettingSection(
                path,
                step.strategy,
                about(step.strategy),
                came[path],
                rows.get(path, []),
                texts.of(path),
                index,
            )
        )
    if policy.recite is not None:
        made.append(
            SettingSection("recite", "recite", about("recite"), came["recite"], rows["recite"])
        )
    return made
