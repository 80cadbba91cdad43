"""Simulations that are answered line by line, of a draft or for one text; runs in a warm worker."""

from __future__ import annotations

import json
import logging
import resource
import sys
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from msgspec import to_builtins

from compaction.policies.policy import Policy, from_dict
from compaction.simulation.kept import KeptText, kept_under
from compaction.simulation.recording import Recording
from sessions.actions.lab.draft_verdicts import draft_verdict
from sessions.actions.lab.simulated_figures import (
    figures_of,
    lived_figures,
    recording_of,
    state_of,
)
from sessions.models import Run, Session
from sessions.models.lab.charged_sums import charged_cost
from sessions.models.lab.simulated_sums import regressions, sums

log = logging.getLogger(__name__)

KEPT_STEPS = 30_000
KEPT_CHARS = 200_000_000
"""Most steps and characters of the recordings in memory; the latest stays in any case."""
KEPT_FIGURES = 50_000
"""Most results in memory, about 1 KB each."""
KEPT_COUNTS = 20_000
"""Texts made by policies whose counts a recording may keep."""
FULL_MB = 1_500
"""Memory from which a worker ends after its answer."""
LEAST_SECONDS = 0.04
"""Time between two lines with figures: a page draws no faster."""
WORST = 3

Line = dict[str, Any]
Key = tuple[UUID, str]
Found = tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]
"""Figures, and the worst needs."""


@dataclass
class DraftFigures:
    """Answers requests, and keeps the recordings and results of the latest ones."""

    recordings: OrderedDict[Key, Recording] = field(default_factory=OrderedDict)
    results: OrderedDict[tuple[Key, str], Found] = field(default_factory=OrderedDict)
    oracles: dict[Key, int | None] = field(default_factory=dict)

    @property
    def full(self) -> bool:
        """Whether the process has used so much memory that it should end."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1 << (20 if sys.platform == "darwin" else 10)) > FULL_MB

    def lines(self, asked: Mapping[str, Any]) -> Iterator[Line | None]:
        """Answer a request: {team, sessions: [ids], active: its name, policies: {draft, active:
        documents}, effects: {path: document}, points: {name: document}, guardrail}; or
        {team, session: id, text, steps, policies: {name: document}}, see `_kept_text`.

        Yields None after each simulation, where the caller may stop, and these lines:

        - {kind: "figures", through, total, draft, active, recorded: sums, verdict, rows}, whenever
          sessions are done; `rows` are the sessions since the line before;
        - {kind: "done", ms, cpu_ms, steps, worst, problems}, when all are;
        - {kind: "effect", path, charged_microusd, in_context}: what one changed setting does alone;
        - {kind: "point", name, charged_microusd, in_context}: another policy on the same sessions;
        - {kind: "oracle", cost_microusd}: the cost of knowing the future.

        Costs of `rows` and `charged_microusd` include reading back.
        """
        if "text" in asked:
            yield from self._kept_text(asked)
            return
        trial = _Trial(self, asked)
        yield from trial.main()
        yield from trial.effects()
        yield from trial.points()
        yield from trial.oracle()

    def _kept_text(self, asked: Mapping[str, Any]) -> Iterator[Line | None]:
        """What policies would have done to a text: {kind: "kept", rows: of `KeptText`}, or {kind:
        "failed", error: the class of the exception}."""
        policies = {name: from_dict(one) for name, one in asked["policies"].items()}
        rows: list[KeptText] = []
        try:
            session = Session.objects.for_team(asked["team"]).get(pk=asked["session"])
            recording = self.recording(session, _key_of(session))
            for row in kept_under(recording, policies, asked["text"], asked["steps"]):
                rows.append(row)
                yield None
        except Exception as error:
            # Its message may quote content.
            log.exception("session %s could not be simulated", asked["session"])
            yield {"kind": "failed", "error": type(error).__name__}
            return
        yield {"kind": "kept", "rows": to_builtins(rows)}

    def figures(self, session: Session, key: Key, policy: Policy | None, name: str) -> Found:
        """Results of a session under a policy, or as recorded for None; `name` identifies the
        policy's values."""
        known = self.results.get((key, name))
        if known is None:
            recording = self.recording(session, key)
            if policy is None:
                known = lived_figures(recording), ()
            else:
                simulated = figures_of(recording, policy)
                known = simulated.figures, simulated.worst
                if len(recording.counted) > KEPT_COUNTS:
                    recording.counted.clear()
            self.results[key, name] = known
            if len(self.results) > KEPT_FIGURES:
                self.results.popitem(last=False)
        return known

    def oracle(self, session: Session, key: Key) -> int | None:
        """The oracle's cost of a session in micro-dollars; None without a price."""
        if key not in self.oracles:
            if len(self.oracles) > KEPT_FIGURES:
                self.oracles.clear()
            self.oracles[key] = self.recording(session, key).oracle_cost
        return self.oracles[key]

    def recording(self, session: Session, key: Key) -> Recording:
        """The recording of a session, read once. Raises MissingBlob, DamagedBlob."""
        found = self.recordings.pop(key, None)
        self.recordings[key] = found or recording_of(session)
        while len(self.recordings) > 1 and self._too_many():
            self.recordings.popitem(last=False)
        return self.recordings[key]

    def _too_many(self) -> bool:
        kept = [one.value for one in self.recordings.values()]
        chars = sum(block.chars for value in kept for block in value.blocks)
        return sum(len(value.calls) for value in kept) > KEPT_STEPS or chars > KEPT_CHARS


def _key_of(session: Session) -> Key:
    """A session and its state."""
    runs = session.runs.filter(origin=Run.Origin.RECORDED)
    return _key(session, runs.values_list("head", flat=True).first() or 0)


def _key(session: Session, head: int) -> Key:
    # Its figures stay when its content is erased, but what is in memory of it is not shown.
    return session.pk, f"{state_of(session, head)} {session.content_erased}"


class _Trial:
    """One request: its sessions and policies, and what has been found so far."""

    def __init__(self, kept: DraftFigures, asked: Mapping[str, Any]) -> None:
        self.kept, self.asked = kept, asked
        self.policies = {name: from_dict(one) for name, one in asked["policies"].items()}
        self.names = {name: _identity(one) for name, one in asked["policies"].items()}
        rows = Session.objects.for_team(asked["team"]).in_bulk(map(UUID, asked["sessions"]))
        recorded = Run.objects.filter(session__in=rows, origin=Run.Origin.RECORDED)
        heads = dict(recorded.values_list("session", "head"))
        ordered = [rows[pk] for pk in map(UUID, asked["sessions"]) if pk in rows]
        self.sessions = {_key(one, heads.get(one.pk, 0)): one for one in ordered}
        self.good: list[Key] = []
        self.problems: list[Key] = []

    def main(self) -> Iterator[Line | None]:
        """Simulate the draft beside the active version and the recording."""
        began, cpu, said = time.monotonic(), time.process_time(), 0.0
        rows: list[Line] = []
        for number, key in enumerate(self.sessions, start=1):
            row = self._row(key)
            if row is not None:
                rows.append(row)
            if number == len(self.sessions) or time.monotonic() - said >= LEAST_SECONDS:
                said = time.monotonic()
                yield self._figures(rows, number)
                rows = []
            yield None
        yield {
            "kind": "done",
            "ms": round((time.monotonic() - began) * 1000),
            "cpu_ms": round((time.process_time() - cpu) * 1000),
            "steps": sum(self.sessions[key].step_count for key in self.good),
            "worst": self._worst(),
            "problems": [str(pk) for pk, _ in self.problems],
        }

    def _row(self, key: Key) -> Line | None:
        try:
            found = [self._found(key, name)[0] for name in ("recorded", "active", "draft")]
        except Exception:
            # One broken session must not end the rest; its message may quote content.
            log.exception("session %s could not be simulated", key[0])
            self.problems.append(key)
            return None
        self.good.append(key)
        return {
            "id": str(key[0]),
            "cost": [charged_cost(one) for one in found],
            "recall": [one["in_context"] if one["needs"] else None for one in found],
        }

    def _figures(self, rows: list[Line], through: int) -> Line:
        recorded, active, draft = (self._sums(name) for name in ("recorded", "active", "draft"))
        over = through == len(self.sessions)
        verdict = draft_verdict(
            draft,
            active,
            recorded,
            (len(self.good), len(self.sessions)),
            self.asked["guardrail"],
            active_name=self.asked["active"] if self.names["draft"] == self.names["active"] else "",
            over=over,
        )
        return {
            "kind": "figures",
            "through": through,
            "total": len(self.sessions),
            "draft": draft,
            "active": active,
            "recorded": recorded,
            "verdict": verdict,
            "rows": rows,
        }

    def _worst(self) -> list[Line]:
        """The sessions that the draft harms most, with the step to look at."""
        if self.names["draft"] == self.names["active"]:
            return []
        found = [
            (key[0], *self._found(key, "draft"), self._found(key, "active")[0]) for key in self.good
        ]
        return [
            {"id": str(one.key), "step": one.step or 1, "why": one.why}
            for one in regressions(found, self.asked["active"])[:WORST]
        ]

    def effects(self) -> Iterator[Line | None]:
        """Simulate each changed setting alone, against the active version."""
        for path, document in self.asked["effects"].items():
            for key in self.good:
                self._under(key, document)
                yield None
            active = self._sums("active")
            alone = sums([self._under(key, document) for key in self.good])
            if active["priced"] and active["priced"] == alone["priced"]:
                cost = _minus(charged_cost(alone), charged_cost(active))
            else:
                cost = None
            points = _minus(alone["in_context"], active["in_context"])
            yield {"kind": "effect", "path": path, "charged_microusd": cost, "in_context": points}

    def points(self) -> Iterator[Line | None]:
        """Simulate other policies, for the picture."""
        known = {self.names["active"], self.names["draft"]}
        for name, document in self.asked["points"].items():
            if _identity(document) in known:
                continue
            found = []
            for key in self.good:
                found.append(self._under(key, document))
                yield None
            total = sums(found)
            at = {of: total[of] for of in ("charged_microusd", "in_context")}
            yield {"kind": "point", "name": name, **at}

    def oracle(self) -> Iterator[Line | None]:
        """Find what knowing the future would cost."""
        costs = []
        for key in self.good:
            costs.append(self.kept.oracle(self.sessions[key], key))
            yield None
        known = [cost for cost in costs if cost is not None]
        yield {"kind": "oracle", "cost_microusd": sum(known) if known else None}

    def _sums(self, name: str) -> dict[str, Any]:
        return sums([self._found(key, name)[0] for key in self.good])

    def _found(self, key: Key, name: str) -> Found:
        policy = self.policies.get(name)
        return self.kept.figures(self.sessions[key], key, policy, self.names.get(name, name))

    def _under(self, key: Key, document: Mapping[str, Any]) -> Mapping[str, Any]:
        named = _identity(document)
        return self.kept.figures(self.sessions[key], key, from_dict(document), named)[0]


def _identity(document: Mapping[str, Any]) -> str:
    """What decides a policy's results, as a text: not its name."""
    return json.dumps({**document, "name": ""}, sort_keys=True)


def _minus(mine: float | None, theirs: float | None) -> float | None:
    return mine - theirs if mine is not None and theirs is not None else None
