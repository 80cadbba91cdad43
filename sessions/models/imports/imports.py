"""Imports, their files, and skipped records."""

from __future__ import annotations

import uuid

from django.db import models


class Import(models.Model):
    """One import, by command or upload."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(
        "agent_sessions.Team", on_delete=models.CASCADE, related_name="imports"
    )
    job = models.OneToOneField(
        "agent_sessions.Job", null=True, on_delete=models.SET_NULL, related_name="import_run"
    )
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"import {self.id}"


class ImportFile(models.Model):
    """One file of an import: its format, what was found, and what was new.

    Counts cover the whole file, including what was known before; `new_messages` were added by this
    import.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "waiting"
        NEW = "new", "new"
        GROWN = "grown", "grown"
        KNOWN = "known", "known"
        EMPTY = "empty", "no messages yet"
        REFUSED = "refused", "refused"

    import_run = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="files")
    path = models.CharField(max_length=1000)
    stored = models.CharField(
        max_length=1000, blank=True, help_text="path of an upload until it is imported"
    )
    size = models.PositiveBigIntegerField(default=0, help_text="bytes")
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    format = models.CharField(max_length=40, blank=True)
    sessions = models.PositiveIntegerField(default=0)
    messages = models.PositiveIntegerField(default=0)
    new_messages = models.PositiveIntegerField(default=0)
    calls = models.PositiveIntegerField(default=0)
    usage_calls = models.PositiveIntegerField(default=0)
    tool_calls = models.PositiveIntegerField(default=0)
    compactions = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    problems = models.JSONField(default=list)
    found = models.JSONField(default=list, help_text="ids of its sessions")

    def __str__(self) -> str:
        return self.path


class SkippedRecord(models.Model):
    """A kind of record that belongs to no context: counted, and kept if its type is unknown.

    One row per file, type and reason; `lines` locates the records that were kept.
    """

    file = models.ForeignKey(ImportFile, on_delete=models.CASCADE, related_name="skipped_records")
    type = models.CharField(max_length=120)
    reason = models.CharField(max_length=12)
    count = models.PositiveIntegerField()
    lines = models.JSONField(default=list, help_text="[line, sha] of each kept record")

    def __str__(self) -> str:
        return f"{self.count} × {self.type}"
