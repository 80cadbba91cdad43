"""Boards and the memory that sessions share: anchors, shares, and who subscribed to them."""

from __future__ import annotations

from django.db import models


class Board(models.Model):
    """What is known of one task, one session without a task, or one project.

    `name` is the task's, the session's UUID, or the project's; whoever of the team works on it
    reads and fills the same board.
    """

    class Kind(models.TextChoices):
        TASK = "task"
        SESSION = "session"
        PROJECT = "project"

    team = models.ForeignKey("agent_sessions.Team", on_delete=models.CASCADE, related_name="boards")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    name = models.CharField(max_length=300)
    session = models.ForeignKey(
        "agent_sessions.Session", null=True, on_delete=models.CASCADE, related_name="boards",
        help_text="of a session's own board",
    )  # fmt: skip
    created = models.DateTimeField(auto_now_add=True)
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "kind", "name"], name="board_once_per_team")
        ]
        indexes = [models.Index(fields=["team", "-changed"], name="board_newest")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Share(models.Model):
    """What a session shares of its memory: its summary and board as they were, once per `key`.

    The row is the event: it is written in the transaction of what caused it, and `sent` is null
    until a worker has brought it to all who subscribed. `number` counts a session's shares from 1.
    `files` are SHA-256 of texts by path ("" where unknown), `refs` references to tool results.
    """

    class Cause(models.TextChoices):
        TASK_DONE = "task_done"
        COMPACTION = "compaction"
        BY_HAND = "by_hand"

    team = models.ForeignKey("agent_sessions.Team", on_delete=models.CASCADE, related_name="shares")
    session = models.ForeignKey(
        "agent_sessions.Session", on_delete=models.CASCADE, related_name="shares"
    )
    key = models.CharField(max_length=200)
    number = models.PositiveIntegerField()
    cause = models.CharField(max_length=10, choices=Cause.choices)
    agent = models.CharField(max_length=120, blank=True)
    task = models.CharField(max_length=300, blank=True)
    step = models.PositiveIntegerField(default=0)
    summary = models.TextField(blank=True)
    board = models.TextField(blank=True, help_text="as XML")
    refs = models.JSONField(default=list)
    files = models.JSONField(default=dict)
    masked = models.JSONField(default=dict, help_text="secrets masked, by kind")
    sent = models.DateTimeField(null=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "key"], name="share_once_per_session"),
            models.UniqueConstraint(fields=["session", "number"], name="share_number_once"),
        ]
        indexes = [
            models.Index(fields=["team", "-created"], name="share_newest"),
            models.Index(fields=["team", "sent"], name="share_to_send"),
        ]

    def __str__(self) -> str:
        return f"share {self.number} of {self.session_id}"


class Anchor(models.Model):
    """One entry of a board (`compaction/board/board.py`), under a key that is its own there.

    `by` says who put it there: code that read it off a session, an agent, a person, or a share
    that came. `files` are what it rests on, as for shares; `stale` says why it may no longer hold.
    `evidence` counts by session how often something of a project was seen. Secrets are masked.
    """

    class By(models.TextChoices):
        CODE = "code"
        AGENT = "agent"
        PERSON = "person"
        SHARE = "share"

    board = models.ForeignKey(Board, on_delete=models.CASCADE, related_name="anchors")
    key = models.CharField(max_length=200)
    kind = models.CharField(max_length=10)
    text = models.TextField()
    agent = models.CharField(max_length=120, blank=True)
    task = models.CharField(max_length=300, blank=True)
    at = models.BigIntegerField(null=True, help_text="ms since the epoch")
    by = models.CharField(max_length=8, choices=By.choices)
    session = models.ForeignKey(
        "agent_sessions.Session", null=True, on_delete=models.SET_NULL, related_name="anchors",
        help_text="that it was read from, or whose agent put it there",
    )  # fmt: skip
    message = models.PositiveIntegerField(null=True)
    share = models.ForeignKey(Share, null=True, on_delete=models.SET_NULL, related_name="anchors")
    untrusted = models.BooleanField(default=False)
    files = models.JSONField(default=dict)
    stale = models.CharField(max_length=300, blank=True)
    evidence = models.JSONField(default=dict)
    removed = models.DateTimeField(
        null=True, help_text="by people: code that sees it again leaves it away"
    )
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["board", "key"], name="anchor_once_per_board")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


class Subscription(models.Model):
    """A session that wants what others share: those of an agent, of a task, or all of the team.

    It gets what is shared from then on.
    """

    class Kind(models.TextChoices):
        AGENT = "agent"
        TASK = "task"
        TEAM = "team"

    session = models.ForeignKey(
        "agent_sessions.Session", on_delete=models.CASCADE, related_name="subscriptions"
    )
    kind = models.CharField(max_length=5, choices=Kind.choices)
    value = models.CharField(max_length=300, blank=True, help_text="agent or task; none for team")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["session", "kind", "value"], name="subscription_once_per_session"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.value}".strip()


class Delivery(models.Model):
    """A share that came to a session; it comes once, even where its anchor was deleted since."""

    share = models.ForeignKey(Share, on_delete=models.CASCADE, related_name="deliveries")
    session = models.ForeignKey(
        "agent_sessions.Session", on_delete=models.CASCADE, related_name="deliveries"
    )
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["share", "session"], name="delivered_once")]

    def __str__(self) -> str:
        return f"{self.share_id} to {self.session_id}"


class Gathering(models.Model):
    """How far a session was read for its board: `blocks` of its originals, and what is remembered
    of them (`Gatherer`, `Observed`)."""

    session = models.OneToOneField(
        "agent_sessions.Session", primary_key=True, on_delete=models.CASCADE,
        related_name="gathering",
    )  # fmt: skip
    board = models.ForeignKey(Board, null=True, on_delete=models.SET_NULL, related_name="+")
    blocks = models.PositiveIntegerField(default=0)
    remembered = models.JSONField(default=dict)
    over = models.BooleanField(default=False, help_text="its end is on the board, too")

    def __str__(self) -> str:
        return f"gathered up to block {self.blocks}"


class Opening(models.Model):
    """What a session begins with that others found out, as its agent asked for.

    `wanted` is `board` (of its task, or its parent's with the parent's summary) or `project` (that,
    and what is known of the project). `sha` is the blob of the text, fixed with the first message
    and never changed, so that the cached prefix stays; empty where nothing was known.
    """

    class Wanted(models.TextChoices):
        NOTHING = "none"
        BOARD = "board"
        PROJECT = "project"

    session = models.OneToOneField(
        "agent_sessions.Session", primary_key=True, on_delete=models.CASCADE,
        related_name="opening",
    )  # fmt: skip
    wanted = models.CharField(max_length=8, choices=Wanted.choices, default=Wanted.NOTHING)
    project = models.CharField(max_length=300, blank=True)
    sha = models.CharField(max_length=64, blank=True)
    tokens = models.PositiveIntegerField(default=0, help_text="in the session's counting")
    fixed = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.wanted} at the beginning"
