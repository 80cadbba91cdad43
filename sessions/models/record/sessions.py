"""Recorded data: sessions, messages, blocks and model calls."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from compaction.prices import prices
from sessions.models.web.happened import Fill, OrElse, OwnFirst, ended
from sessions.models.web.shown import ShownChars, ShownJSON
from sessions.models.web.statements import Statement, given_text, given_uuid

SOURCE_LIVE = "api"
"""The `source` of sessions that agents report while they run."""

QUIET_AFTER = timedelta(minutes=30)
"""Time without a message or outcome after which an agent counts as gone."""

COST_IS_BOUND = Q(cost_microusd__isnull=False) & (
    Q(cost_at_least=True) | Q(usage_calls__lt=F("step_count"))
)
"""Sessions whose cost is only a lower bound: some calls reported no usage, or too little."""


SORT_KEYS: dict[str, models.Func] = {
    "newest": OwnFirst("ended_at", "demo"),
    "peak": Fill("peak_tokens", "window"),
    "cost": OrElse(F("cost_microusd"), -1),
    "steps": OrElse(F("step_count"), 0),
}
"""What lists sort by, never null; each has an index."""


class SessionQuerySet(models.QuerySet["Session"]):
    """Sessions, scoped by team."""

    def for_team(self, team: models.Model) -> SessionQuerySet:
        """The team's sessions; requests must reach sessions through this."""
        return self.filter(team=team)

    def live(self) -> SessionQuerySet:
        """Sessions whose agents are probably still running."""
        since = timezone.now() - QUIET_AFTER
        return self.filter(source=SOURCE_LIVE, outcome="", changed__gte=since)

    def named_in(self, team: models.Model, name: str) -> Session | None:
        """The team's session with that external id, or else that UUID; with its policy."""
        try:
            pk = uuid.UUID(name) if len(name) <= 36 else None
        except ValueError:
            pk = None
        if pk is None:
            named: Session | None = _NAMED.first(team=team.pk, name=name)
            return named
        found = _NAMED_OR_WITH_ID.rows(team=team.pk, name=name, id=pk)
        return max(found, key=lambda one: one.external_id == name, default=None)


class Session(models.Model):
    """One agent's work from start to end, under one external id.

    Counters and sums are updated as records arrive. Token sums are the provider's (normalized);
    `token_ratio` (permille) scales the o200k counts stored with blocks, frozen per revision;
    `learned_ratio` is what a live session's usage shows since, for its simulations.
    `version` rises with every change: pages compare it, hints carry it.
    """

    class Basis(models.TextChoices):
        EXACT = "exact"
        CALIBRATED = "calibrated"
        ESTIMATED = "estimated"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(
        "agent_sessions.Team", on_delete=models.CASCADE, related_name="sessions", db_index=False
    )
    external_id = models.CharField(max_length=300)
    source = models.CharField(max_length=40, blank=True, help_text="log format, or “api”")
    agent = models.CharField(max_length=120, blank=True)
    model = models.CharField(max_length=120, blank=True)
    title = ShownChars(max_length=300, blank=True)
    task = models.CharField(max_length=300, blank=True)
    window = models.PositiveIntegerField(null=True, help_text="tokens")
    meta = ShownJSON(default=dict)
    demo = models.BooleanField(default=False)
    outcome = models.CharField(
        max_length=12,
        blank=True,
        help_text="succeeded, failed or abandoned, as reported by the agent",
    )

    parent = models.ForeignKey(
        "self", null=True, on_delete=models.SET_NULL, related_name="children"
    )
    parent_external_id = models.CharField(max_length=300, blank=True)
    parent_call = models.CharField(max_length=200, blank=True)
    parent_step = models.PositiveIntegerField(null=True)

    policy_version = models.ForeignKey(
        "agent_sessions.PolicyVersion", null=True, on_delete=models.PROTECT, related_name="sessions"
    )
    policy_from = models.CharField(  # noqa: DJ001
        max_length=8, null=True, help_text="who selected it: request, rollout, team or default"
    )
    rollout = models.ForeignKey(
        "agent_sessions.Rollout", null=True, on_delete=models.SET_NULL, related_name="sessions",
        help_text="in progress when the session began, whichever version the session got",
    )  # fmt: skip

    overrides = models.JSONField(
        null=True, help_text="settings that the request or the environment overrides"
    )

    message_count = models.PositiveIntegerField(default=0)
    block_count = models.PositiveIntegerField(default=0)
    step_count = models.PositiveIntegerField(default=0)
    turn_count = models.PositiveIntegerField(default=0)
    tool_call_count = models.PositiveIntegerField(default=0)
    error_count = models.PositiveIntegerField(default=0)
    compaction_count = models.PositiveIntegerField(default=0)

    token_ratio = models.PositiveIntegerField(default=1000, help_text="permille")
    learned_ratio = models.PositiveIntegerField(null=True, help_text="permille, live sessions")
    token_basis = models.CharField(max_length=12, choices=Basis.choices, default=Basis.ESTIMATED)
    hidden_tokens = models.PositiveIntegerField(
        default=0, help_text="prompt tokens not shown in the log, inferred"
    )
    peak_tokens = models.PositiveIntegerField(default=0)
    used_tokens = models.PositiveIntegerField(
        null=True, help_text="prompt tokens of the next call, hidden tokens included"
    )
    counted_tokens = models.PositiveIntegerField(
        null=True, help_text="`used_tokens` before correction by reported usage"
    )
    peak_measured = models.BooleanField(default=False)
    usage_calls = models.PositiveIntegerField(default=0)
    uncached_tokens = models.BigIntegerField(default=0)
    cache_read_tokens = models.BigIntegerField(default=0)
    cache_write_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cost_microusd = models.BigIntegerField(null=True)
    cost_at_least = models.BooleanField(
        default=False, help_text="reported outputs are smaller than the outputs in the log"
    )
    break_count = models.PositiveIntegerField(default=0)
    forecast_calls = models.PositiveIntegerField(
        default=0, help_text="calls whose cache read our rules forecast; 0 if none is reported"
    )
    forecast_tokens = models.PositiveBigIntegerField(default=0, help_text="cache reads forecast")
    forecast_reported_tokens = models.PositiveBigIntegerField(default=0, help_text="as reported")
    forecast_prompt_tokens = models.PositiveBigIntegerField(default=0)
    forecast_off_tokens = models.PositiveBigIntegerField(
        default=0, help_text="differences of single calls, added up"
    )
    measured = models.BooleanField(
        default=False, help_text="whether sums and figures are up to date"
    )
    sparkline = models.JSONField(default=list, help_text="tokens by kind in up to 60 columns")

    # Nullable without default: otherwise SQLite would rebuild the table.
    paused = models.JSONField(
        null=True, help_text="who paused it, why and since when; null while it may go on"
    )

    erasing = models.DateTimeField(null=True, help_text="when its erasure began")
    content_erased = models.DateTimeField(
        null=True, help_text="when its content was erased; its figures stay"
    )

    archived = models.DateTimeField(
        null=True, help_text="when its messages were archived; null while they are in their tables"
    )
    unpacked = models.DateTimeField(null=True, help_text="when it was last unpacked")

    started_at = models.BigIntegerField(null=True, help_text="ms since the epoch")
    ended_at = models.BigIntegerField(null=True, help_text="ms since the epoch")
    created = models.DateTimeField(auto_now_add=True)
    changed = models.DateTimeField(auto_now=True)
    version = models.PositiveBigIntegerField(default=0)
    tallied_version = models.BigIntegerField(
        default=-1, db_default=-1, help_text="the version that is in the kept sums of its day"
    )
    tallied_compacted = models.BooleanField(
        default=False, db_default=False, help_text="its managed context was compacted by then"
    )
    tally_day = models.PositiveIntegerField(
        null=True, help_text="the day in whose kept sums it is, from the epoch"
    )
    indexed_blocks = models.PositiveIntegerField(
        default=0, db_default=0, help_text="blocks that search can find"
    )

    objects = SessionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "external_id"], name="external_id_once_per_team"
            )
        ]
        indexes = [
            models.Index(fields=["team", "-changed"], name="session_newest"),
            models.Index(fields=["team", "created"], name="session_arrived"),
            models.Index(F("team"), ended().desc(), name="session_ended"),
            *(
                models.Index(F("team"), key.desc(), F("id").desc(), name=f"session_by_{name}")
                for name, key in SORT_KEYS.items()
            ),
            models.Index(
                fields=["team", "created"],
                condition=models.Q(ended_at=None),
                name="session_untimed",
            ),
            models.Index(
                fields=["team"],
                condition=models.Q(version__gt=F("tallied_version")),
                name="session_due",
            ),
            models.Index(
                fields=["team", "policy_version", "demo"],
                condition=models.Q(policy_version__isnull=False),
                name="session_policy",
            ),
            models.Index(fields=["team"], condition=models.Q(demo=True), name="session_demo"),
            models.Index(
                fields=["team"],
                condition=models.Q(block_count__gt=F("indexed_blocks")),
                name="session_unindexed",
            ),
            models.Index(
                fields=["team", "parent_external_id"],
                condition=models.Q(parent=None, parent_external_id__gt=""),
                name="session_unlinked",
            ),
        ]

    def __str__(self) -> str:
        return self.title or self.external_id

    def reread(self) -> None:
        """Read its columns again, like refresh_from_db. Raises DoesNotExist."""
        row = _BY_ID.first(session=self.pk)
        if row is None:
            raise Session.DoesNotExist
        vars(self).pop("sparkline", None)
        for field in self._meta.concrete_fields:
            if field.attname == "sparkline":
                continue
            value = getattr(row, field.attname)
            if field.is_relation and value != getattr(self, field.attname):
                self._state.fields_cache.pop(field.name, None)
            setattr(self, field.attname, value)

    @property
    def live(self) -> bool:
        """Whether its agent is probably still running."""
        quiet = timezone.now() - self.changed > QUIET_AFTER
        return self.source == SOURCE_LIVE and not self.outcome and not quiet

    @property
    def policy_document(self) -> dict[str, Any] | None:
        """The policy document that manages its context, with overrides applied; None without a
        policy."""
        if self.overrides is not None:
            return dict(self.overrides["document"])
        return None if self.policy_version is None else dict(self.policy_version.document)

    @property
    def reads_back(self) -> bool:
        """Whether its policy edits contexts, so that references to originals can stand in them."""
        return bool((self.policy_document or {}).get("steps"))

    @property
    def cost_is_bound(self) -> bool:
        """Whether its cost is only a lower bound, as `COST_IS_BOUND` says, or while it runs: a job
        counts the usage of its newest calls a moment after they are stored."""
        if self.cost_microusd is None:
            return False
        return self.cost_at_least or self.usage_calls < self.step_count or self.live

    @property
    def cache_read_share(self) -> float | None:
        """Share of reported prompt tokens read from the cache; None without usage."""
        prompt = self.uncached_tokens + self.cache_read_tokens + self.cache_write_tokens
        return self.cache_read_tokens / prompt if prompt else None

    @property
    def peak_share(self) -> float | None:
        """Peak context as a share of the window; None if the window is unknown."""
        return self.peak_tokens / self.window if self.window else None

    @property
    def window_taken(self) -> int:
        """The window, or an assumed one if unknown; `window` null tells them apart."""
        return self.window or prices.window(self.model) or prices.UNKNOWN_WINDOW

    def count_with(self, ratio: int, hidden: int | None = None) -> None:
        """Count, in memory only, with another token ratio, and the hidden prompt that it shows."""
        if ratio != self.token_ratio:
            self.token_ratio, self.token_basis = ratio, Session.Basis.CALIBRATED
            self.hidden_tokens = self.hidden_tokens if hidden is None else hidden

    def scaled(self, tokens: int) -> int:
        """Scale stored o200k tokens to the session's counting; the browser repeats this rule."""
        return (tokens * self.token_ratio + 500) // 1000


_WITH = ("team", "policy_version__policy")
_NAMED = Statement(
    lambda: (
        Session.objects.select_related(*_WITH)
        .defer("sparkline")
        .filter(team_id=given_uuid("team"), external_id=given_text("name"))
    )
)
_NAMED_OR_WITH_ID = Statement(
    lambda: (
        Session.objects.select_related(*_WITH)
        .defer("sparkline")
        .filter(
            models.Q(external_id=given_text("name")) | models.Q(pk=given_uuid("id")),
            team_id=given_uuid("team"),
        )
    )
)

_BY_ID = Statement(lambda: Session.objects.defer("sparkline").filter(pk=given_uuid("session")))
