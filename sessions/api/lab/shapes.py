"""API schemas for simulations and tunings."""

from __future__ import annotations

from typing import Annotated, Literal

from ninja import Schema
from pydantic import Field, StrictInt, StrictStr

from compaction.policies.presets import PRESETS
from sessions.actions.lab.choices import MOST, USUAL
from sessions.actions.lab.simulations import MOST_OTHERS
from sessions.actions.lab.tunings import MOST_TRIALS, TRIALS
from sessions.api.jobs.shapes import JobAsked
from sessions.api.web.shapes import BIGGEST, BodyIn, Json, Text
from sessions.models.dashboard.matching import FLAGS


class SimulationAsked(JobAsked):
    """A queued simulation of one session, with the name of the future run."""

    run: str


class LabSimulationAsked(JobAsked):
    """A queued simulation with its page; `draft` is the version that it simulates."""

    simulation: str
    draft: str
    url: str


class SimulationLine(Schema):
    """A simulation: progress (`done` of `total` sessions), versions, and selection; `url` is its
    page."""

    id: str
    state: Literal["queued", "running", "done", "partial", "failed", "cancelled"]
    done: int
    total: int
    draft: str
    active: str
    chosen: dict[str, Json]
    note: str
    author: str | None
    created: str
    job: str | None
    problem: dict[str, Json] | None
    url: str


class SimulationList(Schema):
    """Simulations, newest first; pass `next` as `after` to get the next page."""

    simulations: list[SimulationLine]
    next: str | None


class Spread(Schema):
    """The spread of a figure over `n` sessions."""

    median: float
    p10: float
    p90: float
    n: int


class MeasuredUsage(Schema):
    """What the logs of `sessions` report: prompt tokens, and the share of these read from the
    cache. `tokens_at_least`, `cost_at_least`: calls without usage or a price are missing in it.
    `cost_measured`: no recorded cost is estimated."""

    sessions: int
    tokens: int
    cache_read_share: float
    tokens_at_least: bool
    cost_at_least: bool
    cost_measured: bool


class VersionSimulated(Schema):
    """Results of a version, or of the recorded baseline, over the `sessions` finished.

    `sums`: tokens and counts are added, money (micro-dollars) over the `priced` sessions and null
    without any; shares are weighted; `peak_tokens` is the maximum. `against_recorded` has the
    spreads of `tokens` and `cost`, `against_active` also of `peak`, as ratios per session (1 is no
    change, null if unknown), and counts of sessions. `measured`: the reported usage of the
    recorded baseline, null of versions.
    """

    ref: str
    name: str
    number: int | None
    role: Literal["draft", "active", "other", "recorded"]
    sessions: int
    sums: dict[str, Json]
    against_recorded: dict[str, Spread | None] | None
    against_active: dict[str, Json] | None
    measured: MeasuredUsage | None = None


class RegressionOut(Schema):
    """A session that does worse under the draft than under the active version, and where.

    `run_url` is the replay of its simulated run; null until that run is stored, which requires a
    simulation of the session.
    """

    session: str
    title: str
    version: str
    step: int | None
    entry: str | None
    fact: str | None
    why: str
    harm: float
    cost_change: float | None
    in_context_change: float
    run_url: str | None


class SimulationVerdictOut(Schema):
    """What a simulation came to: a sentence, and what stands behind it.

    `dominated`: the draft is worse than the active version in cost or recall and better in neither.
    """

    tone: Literal["good", "bad", "neutral"]
    sentence: str
    detail: str
    dominated: bool


class SimulationOut(SimulationLine):
    """A simulation with its results so far; show `assumptions` next to the figures.

    `verdict` compares `draft` with what `against` names: the active version or what was recorded.
    `through` counts finished sessions, without those in `problems`. `probes` are answers of real
    models ("contextlab probe"): {model, recorded, managed}, each with `steps`, the shares `tool`,
    `arguments`, `read_backs`, `imitates`, and tokens and micro-dollars.
    """

    basis: Literal["simulated"]
    against: Literal["active", "recorded"]
    through: int
    verdict: SimulationVerdictOut
    problems: list[dict[str, Json]]
    versions: list[VersionSimulated]
    regressions: list[RegressionOut]
    probes: list[dict[str, Json]]
    assumptions: list[str]


class TuningAsked(JobAsked):
    """A queued search with its page."""

    tuning: str
    url: str


class TrialOut(Schema):
    """A policy tried by a search. `cost` and `tokens` are shares of the recorded baseline, `cost`
    null without a price; `figures` are sums, `held` those over held-out sessions, null without any;
    `bad_held` says what was worse there: do not use frontier policies that have any. `changes` are
    relative to the starting policy `like`."""

    number: int
    name: str
    like: str
    on_frontier: bool
    document: dict[str, Json]
    changes: list[dict[str, Json]]
    figures: dict[str, Json]
    cost: float | None
    tokens: float
    held: dict[str, Json] | None
    bad_held: list[str]


class TuningOut(Schema):
    """A search for better policies with its trials so far, in order.

    It uses `sessions`, and checks its frontier on the `held` ones at the end. `recorded` is the
    recall of `sessions` as recorded: {needs, in_context, named, lost}; null until computed.
    """

    id: str
    state: Literal["queued", "running", "done", "partial", "failed", "cancelled"]
    base: str
    objective: Literal["cheap", "lean"]
    basis: Literal["simulated"]
    sessions: int
    held: int
    limit: int
    created: str
    job: str | None
    problem: dict[str, Json] | None
    recorded: dict[str, Json] | None
    trials: list[TrialOut]


class SimulationIn(BodyIn):
    """The policy to simulate."""

    policy: Text = Field(
        description="name (its newest version) or name@version; presets: " + ", ".join(PRESETS)
    )


class SessionChoice(Schema):
    """Selection of sessions for a simulation."""

    by: Literal["query", "sample", "hand"] = Field(
        "query",
        description="query: matching sessions, newest first; sample: a random sample of matching "
        "sessions; hand: sessions by id",
    )
    q: str | None = Field(None, description="text in titles, names, ids and messages")
    agent: str | None = Field(None, description="exactly this agent")
    model: str | None = Field(None, description="exactly this model")
    source: str | None = Field(None, description="exactly this log format, or api")
    flags: list[str] | None = Field(None, description=f"all of these: {', '.join(FLAGS)}")
    limit: int | None = Field(None, ge=1, le=MOST, description=f"for a query; default {USUAL}")
    n: int | None = Field(None, ge=1, le=MOST, description=f"for a sample; default {USUAL}")
    seed: int | None = Field(
        None,
        ge=0,
        le=BIGGEST,
        description="for a sample; default 0, and equal seeds give equal samples",
    )
    min_steps: int | None = Field(
        None, ge=1, le=1_000_000, description="minimum number of model calls; default 1"
    )
    ids: list[str] | None = Field(None, description="for by hand: session ids, external or UUIDs")


class LabSimulationIn(BodyIn):
    """Policies to simulate and the sessions to simulate them on; the active version and the
    recorded baseline are always included."""

    sessions: SessionChoice
    draft: Text | dict[str, Json] = Field(
        description="the version under test: name, name@version, or {document, name, based_on} to "
        "save as a version",
        examples=["offload-first"],
    )
    others: Annotated[list[Text], Field(max_length=MOST_OTHERS)] = Field(
        default_factory=list, description="other versions to compare: name or name@version"
    )
    note: Annotated[StrictStr, Field(max_length=300)] = Field(
        "", description="the reason, for people"
    )


class TuningIn(BodyIn):
    """The starting policy, the sessions and the objective of a search."""

    sessions: SessionChoice
    base: Text = Field(description="name, or name@version", examples=["balanced"])
    objective: Literal["cheap", "lean"] = Field(
        "cheap", description="minimize dollars (cheap) or tokens sent (lean)"
    )
    trials: Annotated[StrictInt, Field(ge=1, le=MOST_TRIALS)] = Field(
        TRIALS, description="maximum number of policies to try"
    )
