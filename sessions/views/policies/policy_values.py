"""Policy values for pages, in sections, with remarks and problems."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compaction.policies.fields import GROUPS, Field, about, fields
from compaction.policies.origin import Document, Origin, origins
from compaction.policies.policy import SETTINGS, Policy, to_dict
from compaction.proposals.strategy import Remark
from compaction.strategies import STRATEGIES
from sessions.actions.lab.setting_effects import SettingEffect

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
    strategy: str = ""
    changed_from: str | None = None
    effect: SettingEffect | None = None
    inert: str = ""
    """The objective under which it has no effect, if that is the policy's."""

    @property
    def effect_values(self) -> str:
        """The values that the effect compares, in words."""
        if self.effect is None:
            return ""
        before, after = map(self.field.in_words, (self.effect.before, self.effect.after))
        return f"{before} → {after}"

    @property
    def title(self) -> str:
        """The strategy's name on pages."""
        return title_of(self.strategy)

    @property
    def id(self) -> str:
        """The path as an HTML id."""
        return id_of(self.field.path)

    @property
    def range(self) -> str:
        """The allowed range of a number, in the unit in which it is entered."""
        low, high = (f"{float(end):,.12g}" for end in (self.low, self.high))
        return f"{low} to {high}{' %' if self.field.is_share else ''}"

    @property
    def low(self) -> str:
        """The least number as it is entered."""
        return self.field.entered(self.field.low)

    @property
    def high(self) -> str:
        """The greatest number as it is entered."""
        return self.field.entered(self.field.high)

    @property
    def choices(self) -> list[tuple[str, str]]:
        """Each choice with its name."""
        return [(one, self.field.in_words(one)) for one in self.field.choices]

    @property
    def entered(self) -> str:
        """A number as it is entered."""
        return self.field.entered(self.shown)

    @property
    def wrong(self) -> str:
        """What is wrong with the input, in the unit in which it is entered."""
        number = self.field.low is not None and self.problem.startswith("must be a")
        kind = "whole " if self.field.kind == "int" else ""
        return f"must be a {kind}number from {self.range}" if number else self.problem

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
    def title(self) -> str:
        """The strategy's name on pages."""
        return title_of(self.strategy)

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
    changed: Mapping[str, str] = field(default_factory=dict)
    """The value before, in words, of each setting that the draft changes."""
    effects: Mapping[str, SettingEffect] = field(default_factory=dict)

    def of(self, path: str) -> list[Remark]:
        """The remarks on one value."""
        return [one for one in self.remarks if one.path == path]


def title_of(strategy: str) -> str:
    """The name of a strategy on pages; "" for the whole policy."""
    if strategy == "recite":
        return "Recitation"
    return STRATEGIES[strategy].title if strategy else ""


def id_of(path: str) -> str:
    """Convert "steps[2].parameters.age" to "steps-2-parameters-age"."""
    return re.sub(r"[^a-z0-9_]+", "-", path.lower()).strip("-")


def sections(policy: Policy, texts: SettingTexts) -> list[SettingSection]:
    """The whole policy, each step, and recitation if enabled."""
    came = origins(to_dict(policy), texts.base)
    rows: dict[str, list[SettingRow]] = {}
    strategies = {f"steps[{index}]": step.strategy for index, step in enumerate(policy.steps)}
    strategies["recite"] = "recite"
    for one in fields(policy):
        holder = one.path.partition(".")[0]
        rows.setdefault(holder, []).append(
            SettingRow(
                one,
                texts.given.get(one.path, one.value),
                came[one.path],
                texts.of(one.path),
                texts.problems.get(one.path, ""),
                strategies.get(holder, ""),
                texts.changed.get(one.path),
                texts.effects.get(one.path),
                policy.objective if one.objective not in ("", policy.objective) else "",
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


@dataclass(frozen=True, slots=True)
class SettingGroup:
    """Settings about one thing; `more` are folded until they are asked for."""

    title: str
    rows: list[SettingRow]
    more: list[SettingRow]
    open: bool = False

    @property
    def id(self) -> str:
        """The title as an HTML id."""
        return "group-" + id_of(self.title)

    @property
    def changed(self) -> int:
        """How many folded settings the draft changes."""
        return sum(row.changed_from is not None for row in self.more)

    @property
    def marked(self) -> int:
        """How many folded settings have a problem or a remark."""
        return sum(bool(row.problem or row.remarks) for row in self.more)


def groups(made: list[SettingSection], focus: str = "") -> list[SettingGroup]:
    """Return the settings of all sections by group; `focus` is the path of one to show."""
    rows = [row for section in made for row in section.rows]
    found = []
    for title in GROUPS:
        here = [row for row in rows if row.field.group == title]
        more = [row for row in here if row.field.advanced]
        shown = any(row.problem or row.field.path == focus for row in more)
        if here:
            first = [row for row in here if not row.field.advanced]
            found.append(SettingGroup(title, first, more, shown or not first))
    return found
