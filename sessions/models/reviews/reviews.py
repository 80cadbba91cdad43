"""The review queue: its rules, items, and reviews."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from sessions.models.web.shown import ShownChars, ShownJSON


class ReviewRules(models.Model):
    """Rules that select a team's compactions for review; shares are percent of new ones."""

    team = models.OneToOneField(
        "agent_sessions.Team",
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="review_rules",
    )
    share = models.PositiveSmallIntegerField(default=10, help_text="percent, at random")
    low_score = models.PositiveSmallIntegerField(
        default=60, help_text="percent: all ledgers scoring below"
    )
    after_effects = models.BooleanField(default=True, help_text="all with facts missed later")
    double = models.PositiveSmallIntegerField(
        default=10, help_text="percent reviewed by two people independently"
    )
    minutes = models.PositiveSmallIntegerField(default=20, help_text="duration of a reservation")

    def __str__(self) -> str:
        return f"rules of {self.team_id}"


UNRANKED = -1
"""The rank of an item that an earlier release added."""


class ReviewItemQuerySet(models.QuerySet["ReviewItem"]):
    """Review items, scoped by team."""

    def for_team(self, team: models.Model) -> ReviewItemQuerySet:
        """The team's review items; requests must reach items through this."""
        return self.filter(team=team)


class ReviewItem(models.Model):
    """One compaction in the review queue. `wanted` is the number of reviewers needed; `rank` says
    how bad it is, the worst has the highest (`actions/reviews/ranks.py`)."""

    class Reason(models.TextChoices):
        SHARE = "share", "at random"
        LOW_SCORE = "low_score", "low score"
        AFTER_EFFECTS = "after_effects", "missed later"
        HAND = "hand", "by hand"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(
        "agent_sessions.Team", on_delete=models.CASCADE, related_name="review_items"
    )
    revision = models.OneToOneField(
        "agent_sessions.Revision", on_delete=models.CASCADE, related_name="review_item"
    )
    reason = models.CharField(max_length=14, choices=Reason.choices)
    wanted = models.PositiveSmallIntegerField(default=1)
    rank = models.BigIntegerField(default=UNRANKED, db_default=UNRANKED)
    added_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)
    finished = models.DateTimeField(
        null=True, help_text="when the last required review was submitted"
    )

    objects = ReviewItemQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["team", "finished", "created"], name="review_queue"),
            models.Index(fields=["team", "-created", "-id"], name="review_newest"),
            models.Index(
                fields=["team", "-rank", "created", "id"],
                name="review_worst",
                condition=models.Q(finished=None),
            ),
        ]

    def __str__(self) -> str:
        return f"review of {self.revision_id}"


class Review(models.Model):
    """One person's review of an item, or the reservation to write it.

    `scores` are the rubric's five: goal, constraints, state, next (1 to 5) and invention (true if
    the summary invents nothing). `marks` correct the ledger: fact key to the reviewer's verdict.
    """

    class Verdict(models.TextChoices):
        PASS = "pass"  # noqa: S105 (no password)
        FIX = "fix"
        FAIL = "fail"

    item = models.ForeignKey(ReviewItem, on_delete=models.CASCADE, related_name="reviews")
    reviewer = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="reviews"
    )
    reserved_until = models.DateTimeField(null=True)
    skipped = models.DateTimeField(null=True)
    scores = models.JSONField(default=dict)
    verdict = models.CharField(max_length=4, choices=Verdict.choices, blank=True)
    note = ShownChars(max_length=2000, blank=True)
    marks = ShownJSON(default=dict)
    started = models.DateTimeField(auto_now_add=True)
    submitted = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["item", "reviewer"], name="one_review_per_reviewer")
        ]

    def __str__(self) -> str:
        return f"{self.verdict or 'open'} by {self.reviewer_id}"
