"""Settings suggested for the next policy version, from a team's own compactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import Count, Q

from compaction.advice.adaptive import Model, Past, Suggestion, Task, suggestions, task_of
from compaction.losses.ledger import Fact
from compaction.losses.quality import Measure, fit
from compaction.prices.prices import price
from sessions.models.policies.policies import PolicyVersion
from sessions.models.policies.policy_documents import readable
from sessions.models.record.messages import Block
from sessions.models.record.revisions import Edit, Run
from sessions.models.record.sessions import Session
from sessions.models.reviews.assessments import FactLedger

NEWEST = 30
"""Most compactions to look at, newest first."""

CHANGES = ("write", "edit", "delete")
"""File actions of tool calls that modify a file."""


@dataclass(frozen=True, slots=True)
class Suggested:
    """Suggestions for step `index` of a version, and the number of compactions they are based
    on."""

    index: int
    compactions: int
    suggestions: tuple[Suggestion, ...]

    @property
    def values(self) -> dict[str, Any]:
        """The suggested values, by setting."""
        return {one.name: one.value for one in self.suggestions if one.value is not None}

    def as_list(self) -> list[dict[str, Any]]:
        """The suggestions as JSON, each with the path of its setting."""
        where = f"steps[{self.index}].parameters."
        return [{"path": where + one.name, **asdict(one)} for one in self.suggestions]

    def taken_over(self, document: dict[str, Any]) -> dict[str, Any]:
        """A copy of the version's document with all suggested values."""
        made = deepcopy(document)
        made["steps"][self.index]["parameters"] |= self.values
        return made


def suggested(version: PolicyVersion) -> Suggested | None:
    """Suggest values from the version's newest compactions; None if it never compacts.

    Reads at most `NEWEST` ledgers and the tool calls of their sessions; writes nothing.
    """
    value = readable(version)
    steps = [] if value is None else value.steps
    found = [i for i, step in enumerate(steps) if step.strategy == "compact"]
    if not found:
        return None
    ledgers = list(_ledgers(version))
    sessions = {one.revision.run.session_id: one.revision.run.session for one in ledgers}
    tasks = tasks_of(sessions.values())
    past = [_past(one, tasks[one.revision.run.session_id]) for one in ledgers]
    made = suggestions(past, steps[found[0]].parameters, _model(sessions.values()))
    return Suggested(found[0], len(past), made)


def _ledgers(version: PolicyVersion) -> Iterable[FactLedger]:
    made = Edit.objects.filter(
        revision__policy_version=version,
        revision__run__origin=Run.Origin.MANAGED,
        revision__run__session__team=version.policy.team_id,
        strategy="compact",
    )
    rows = FactLedger.objects.filter(revision__in=made.values("revision")).exclude(quality=[])
    rows = rows.select_related("revision__run__session").order_by("-revision__pk")
    return rows.defer("after", "sections", *(f"revision__run__{one}" for one in Run.LARGE))[:NEWEST]


def _past(ledger: FactLedger, task: Task) -> Past:
    measured = [Measure(**one) for one in ledger.quality]
    missed = frozenset(one.name for one in measured if one.met is False)
    return Past(task, fit(measured, [Fact(**one) for one in ledger.facts]), missed)


def tasks_of(sessions: Iterable[Session]) -> dict[Any, Task]:
    """Classify each session's task by the tools it used."""
    call, said = Q(type="tool_use"), Q(type="text", kind="user")
    rows = (
        Block.objects.filter(call | said, session__in=list(sessions))
        .order_by()
        .values("session")
        .annotate(
            calls=Count("pk", filter=call),
            changes=Count("pk", filter=call & Q(file_action__in=CHANGES)),
            said=Count("pk", filter=said),
        )
    )
    found = {row["session"]: task_of(row["calls"], row["changes"], row["said"]) for row in rows}
    return {one.pk: found.get(one.pk, "chat") for one in sessions}


def _model(sessions: Iterable[Session]) -> Model:
    """The most common model of the sessions."""
    counted = Counter((one.model, one.window) for one in sessions).most_common(1)
    if not counted:
        return Model()
    (name, window), _ = counted[0]
    rates = price(name) if name else None
    read = rates.cache_read / rates.input if rates is not None and rates.input else None
    return Model(window or None, read)
