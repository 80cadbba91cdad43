"""What comes out of the API, for its document.

Answers are written as they are and not checked against these: the tests do that.
"""

from __future__ import annotations

from typing import Any, Literal

from ninja import Schema
from pydantic import Field

from compaction.edits import Trigger
from sessions.api.budget_shapes import BudgetUse

Json = Any


class Fault(Schema):
    """One thing that is wrong: `pointer` is a JSON pointer into the body, or `?name`."""

    pointer: str
    detail: str


class Problem(Schema):
    """What went wrong, and in `detail` what to do about it (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Fault] = []


class OverBudget(Problem):
    """What a check would answer: whether a person may still say yes, and how budgets stand."""

    require_approval: bool
    approval: str | None
    budgets: list[BudgetUse]


class Budget(Schema):
    """How full the window is, in tokens; `delay_ms` is how long to wait before the next call.

    `used` is `counted`, what we count, corrected by what was reported of earlier calls.
    """

    used: int
    counted: int
    window: int
    room: int
    share: float
    state: Literal["ok", "warn", "trigger", "over"]
    trigger: int | None
    target: int | None
    delay_ms: int


class Tokens(Schema):
    """Of the context: now and at its fullest; `ratio` is permille of o200k tokens."""

    used: int | None
    peak: int
    ratio: int
    basis: Literal["exact", "calibrated", "estimated"]


class SessionTold(Schema):
    """A session as it stands; `policy_from` says who chose its policy: the request that made it, a
    rollout, the team, or the default of the server."""

    id: str
    external_id: str
    agent: str
    model: str
    title: str
    task: str
    policy: str | None
    policy_from: Literal["request", "rollout", "team", "default"] | None
    window: int
    window_assumed: bool
    steps: int
    messages: int
    turns: int
    tokens: Tokens
    budget: Budget
    outcome: str
    url: str
    created: str
    version: int


class EffectiveValue(Schema):
    """One value of a session's policy: `source` says who decided it; `strategy` is empty for values
    of the whole policy."""

    path: str
    strategy: str
    name: str
    value: Any
    source: Literal["request", "policy", "preset", "environment", "default"]
    help: str


class SessionPolicy(Schema):
    """What a session runs under, whole and value by value; empty without a policy."""

    policy: str | None
    policy_from: Literal["request", "rollout", "team", "default"] | None
    document: dict[str, Any] | None
    values: list[EffectiveValue]


class SessionPut(SessionTold):
    """The same, and what to know of the request, such as fields that are none of ours."""

    notes: list[str]


class SessionList(Schema):
    """A page of sessions, newest first; `next` is the cursor of what follows, or null."""

    sessions: list[SessionTold]
    next: str | None


class Stored(Schema):
    """A message that was stored, and the tokens that it adds."""

    seq: int
    tokens: int
    estimated: bool
    blocks: int


class Advice(Schema):
    """How long to wait before the next call, and why; `retry_after` is the same in seconds."""

    delay_ms: int
    retry_after: float
    level: str
    text: str


class Delivered(Schema):
    """What became of a batch, and how the session stands now."""

    appended: int
    known: int
    first_seq: int | None
    last_seq: int | None
    messages: list[Stored]
    steps: int
    tokens: int
    budget: Budget
    advice: Advice
    policy: dict[str, Json] | None
    job: str | None
    budgets: list[BudgetUse]
    warnings: list[str]
    notes: list[str]


class MessageList(Schema):
    """Stored messages by number; `next` is the `after` of what follows, or null."""

    messages: list[dict[str, Json]]
    next: int | None


class Toolset(Schema):
    """What of the defined tools a context offers by the session's graph (of that `number`).

    Those `listed` are sent, in order; of these those `allowed` may be used in this `state`.
    """

    number: int
    state: str
    listed: list[str]
    allowed: list[str]
    left_out_tokens: int


class Context(Schema):
    """The context to send: `system`, `tools` and `messages` go to the provider as they are.

    `recited` of its `tokens` are of what the policy has the agent told again at the end. `retry_of`
    is the failed step that the call is to do again. `tool_choice` belongs to the request, too.
    """

    context_id: str | None
    format: str
    step: int
    revision: int
    seq: int
    tokens: int
    budget: Budget
    budgets: list[BudgetUse]
    missing: list[str]
    recited: int
    retry_of: int | None = None
    toolset: Toolset | None = None
    tool_choice: Json = None
    notes: list[str]
    system: list[dict[str, Json]] | None = None
    tools: list[dict[str, Json]] | None = None
    messages: list[dict[str, Json]] | None = None
    blocks: list[dict[str, Json]] | None = None


class Recitation(Schema):
    """What is recited at the end of a context; no text and no tokens where nothing is."""

    step: int
    tokens: int
    text: str


class ReadBack(Schema):
    """Lines of what was offloaded."""

    ref: str
    lines: list[int]
    total_lines: int
    text: str
    truncated: bool
    rest: dict[str, Json] | None


class CallTold(Schema):
    """A model call with its usage: `total` = fresh + cache_read + cache_write_5m + _1h."""

    step: int
    usage: dict[str, int | None]
    reconciles: bool
    cost_microusd: int | None


class Pins(Schema):
    """Numbers of the pinned messages."""

    pins: list[int]


class JobAsked(Schema):
    """A job that was asked for, and where to watch it."""

    job: str
    job_url: str


class SimulationAsked(JobAsked):
    """The same, and the name of the run that it will make."""

    run: str


class ImportAsked(JobAsked):
    """The same, with the import and the page of its report."""

    import_: str = Field(alias="import")
    files: int
    url: str


class JobTold(Schema):
    """A job: how far it is, and how it ended."""

    id: str
    kind: str
    state: Literal["queued", "running", "done", "partial", "failed", "cancelled"]
    attempts: int
    done_units: int
    total_units: int | None
    unit: str
    result: dict[str, Json] | None
    problem: dict[str, Json] | None
    version: int
    created: str
    started: str | None
    finished: str | None


class RevisionTold(Schema):
    """One change of the served context; tokens before and after it, and what it took, measured:
    counting tokens, the rest of the fold's step (in ms), and writing the summary."""

    number: int
    step: int
    trigger: Trigger
    reason: str
    tokens_before: int | None
    tokens_after: int | None
    estimate_ms: float | None
    shaping_ms: float | None
    summary_ms: int | None
    edits: int


class RevisionList(Schema):
    """The changes of the served context, in order."""

    revisions: list[RevisionTold]


class Curves(Schema):
    """Sizes of sessions by step; sessions/api/curves.py says what each list holds.

    `left_out` were chosen too, but are beyond 60 sessions or 24,000 steps.
    """

    basis: Literal["estimated"]
    left_out: int
    sessions: list[dict[str, Json]]


class ReviewTold(Schema):
    """What one person says of a compaction: goal, constraints, state and next from 1 to 5, and
    whether the summary invents nothing; `marks` say of facts what became of them."""

    reviewer: str
    scores: dict[str, int | bool]
    verdict: Literal["pass", "fix", "fail"]
    note: str
    marks: dict[str, Literal["kept", "retrievable", "lost", "unsupported"]]
    submitted: str


class ReviewItemTold(Schema):
    """A compaction that people judge: why it is one, how many are to judge it, what they said.

    Until the last of them has, everybody sees his own review alone, and a program none.
    """

    id: str
    session: str
    run: Literal["recorded", "served", "simulated"]
    revision: int
    step: int
    policy: str | None
    reason: Literal["share", "low_score", "after_effects", "hand"]
    wanted: int
    created: str
    finished: str | None
    reviews: list[ReviewTold]
    url: str


class ReviewList(Schema):
    """Compactions that people judge, newest first; `next` is the `after` of what follows, or
    null."""

    reviews: list[ReviewItemTold]
    next: str | None


class LabSimulationAsked(JobAsked):
    """The same, with the simulation and its page."""

    simulation: str
    url: str


class SimulationLine(Schema):
    """A simulation: how far it is (`done` of `total` sessions), of which versions, and of what;
    `url` is its page."""

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
    """Simulations, newest first; `next` is the `after` of what follows, or null."""

    simulations: list[SimulationLine]
    next: str | None


class Spread(Schema):
    """How a figure is spread over `n` sessions."""

    median: float
    p10: float
    p90: float
    n: int


class VersionSimulated(Schema):
    """What a version, or the recording itself, comes to over the `sessions` that are through.

    `sums`: tokens and counts are added, money (micro-dollars) over the `priced` sessions and null
    where there is none; shares are weighted; `peak_tokens` is the highest. `against_unmanaged` has
    the spreads of `tokens` and `cost`, `against_active` also of `peak`, as ratios session by
    session (1 is no change, null where no session can tell), and counts of sessions.
    """

    ref: str
    name: str
    number: int | None
    role: Literal["draft", "active", "other", "unmanaged"]
    sessions: int
    sums: dict[str, Json]
    against_unmanaged: dict[str, Spread | None] | None
    against_active: dict[str, Json] | None


class RegressionTold(Schema):
    """A session that does worse under the draft than under the active version, and where.

    `run_url` is the replay of its simulated run; null until that is stored, which asking for a
    simulation of that one session does.
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
    in_place_change: float
    run_url: str | None


class SimulationTold(SimulationLine):
    """A simulation and what it found so far; `assumptions` are to be said beside the figures.

    `through` sessions are counted, those of `problems` are not.
    """

    basis: Literal["simulated"]
    through: int
    problems: list[dict[str, Json]]
    versions: list[VersionSimulated]
    regressions: list[RegressionTold]
    assumptions: list[str]


class TuningAsked(JobAsked):
    """The same, with the search and its page."""

    tuning: str
    url: str


class TrialTold(Schema):
    """A policy that a search tried. `cost` and `tokens` are shares of the sessions as recorded,
    `cost` null without a price; `figures` are sums, `held` those over sessions that the search
    never saw, null where there are none, and `bad_held` says what was bad there: those of the
    frontier that have any are not to be taken. `changes` are against the policy `like`, which the
    search began with."""

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


class TuningTold(Schema):
    """A search for better policies and what it tried so far, in the order of trials.

    It looks at `sessions`, and puts its frontier to the `held` ones at the end.
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
    trials: list[TrialTold]
