"""Boards and shared memory: notes, shares, and subscriptions to them."""

from __future__ import annotations

from django.db import models

from sessions.models.web.shown import ShownJSON, ShownText


class Board(models.Model):
    """The shared notes of one task, one project, or one session without a task.

    `name` is the task's or project's name, or the session's UUID. Everyone in the team who works on
    it reads and writes the same board.
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
        help_text="set for a session's own board",
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
    """A session's summary and board as shared at one moment, once per `key`.

    The row is the event: it is written in the transaction of its cause, and `sent` stays null until
    a worker has delivered it to all subscribers. `number` counts a session's shares from 1. `files`
    maps paths to the SHA-256 of their texts ("" if unknown); `refs` are references to tool results.
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
    summary = ShownText(blank=True)
    board = ShownText(blank=True, help_text="as XML")
    refs = models.JSONField(default=list)
    files = ShownJSON(default=dict)
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


class Note(models.Model):
    """A note on a board (`compaction/board/board.py`), under a key unique to the board.

    `by` is its origin: code that extracted it from a session, an agent, a person, or a received
    share. `files` are the files it depends on, as for shares; `stale` says why it may no longer
    hold. `evidence` counts, per session, how often a fact about a project was seen. Secrets are
    masked.
    """

    class By(models.TextChoices):
        CODE = "code"
        AGENT = "agent"
        PERSON = "person"
        SHARE = "share"

    board = models.ForeignKey(Board, on_delete=models.CASCADE, related_name="notes")
    key = models.CharField(max_length=200)
    kind = models.CharField(max_length=10)
    text = ShownText()
    agent = models.CharField(max_length=120, blank=True)
    task = models.CharField(max_length=300, blank=True)
    at = models.BigIntegerField(null=True, help_text="ms since the epoch")
    by = models.CharField(max_length=8, choices=By.choices)
    session = models.ForeignKey(
        "agent_sessions.Session", null=True, on_delete=models.SET_NULL, related_name="notes",
        help_text="the session it was extracted from, or whose agent wrote it",
    )  # fmt: skip
    message = models.PositiveIntegerField(null=True)
    share = models.ForeignKey(Share, null=True, on_delete=models.SET_NULL, related_name="notes")
    untrusted = models.BooleanField(default=False)
    files = ShownJSON(default=dict)
    stale = models.CharField(max_length=300, blank=True)
    evidence = ShownJSON(default=dict)
    removed = models.DateTimeField(
        null=True, help_text="removed by a person: code does not add it again"
    )
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["board", "key"], name="note_once_per_board")]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


class Subscription(models.Model):
    """A session's subscription to shares of an agent, of a task, or of the whole team.

    Only later shares are delivered.
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
    """A share delivered to a session. Each is delivered once, even if its note was deleted
    later."""

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
    """How far a session was scanned for its board: the number of its original `blocks`, and what
    the scan remembers of them (`Gatherer`, `Observed`)."""

    session = models.OneToOneField(
        "agent_sessions.Session", primary_key=True, on_delete=models.CASCADE,
        related_name="gathering",
    )  # fmt: skip
    board = models.ForeignKey(Board, null=True, on_delete=models.SET_NULL, related_name="+")
    blocks = models.PositiveIntegerField(default=0)
    remembered = models.JSONField(default=dict)
    over = models.BooleanField(default=False, help_text="whether its end is on the board, too")

    def __str__(self) -> str:
        return f"gathered up to block {self.blocks}"


class Opening(models.Model):
    """The knowledge from other sessions that a session starts with.

    `wanted` is what its agent requested: `board` (of its task, or its parent's with the parent's
    summary), `project` (board plus knowledge about the project) or `none`; empty if nothing, for
    the board of its task if its policy shows boards. `sha` is the blob of the text, frozen with the
    first message so that the cached prefix stays valid; empty if nothing was known.
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
        return f"{self.wanted} at the start"
