"""Web servers and workers that were seen lately."""

from __future__ import annotations

import uuid

from django.db import models


class SeenProcess(models.Model):
    """A web server or worker and when it last said that it runs; kept for a day after that."""

    class Kind(models.TextChoices):
        WEB = "web"
        WORKER = "worker"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=6, choices=Kind.choices)
    host = models.CharField(max_length=100)
    pid = models.PositiveIntegerField()
    version = models.CharField(max_length=40)
    started = models.DateTimeField()
    seen = models.DateTimeField()
    stopped = models.BooleanField(default=False, help_text="whether it ended by itself")

    def __str__(self) -> str:
        return f"{self.kind} {self.host}:{self.pid}"
