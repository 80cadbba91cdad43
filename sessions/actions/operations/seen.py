"""Web servers and workers say every half minute that they run."""

from __future__ import annotations

import os
import socket
import time
import uuid
from datetime import timedelta

from django.utils import timezone

from sessions.models import SeenProcess

SAY_SECONDS = 30.0
KEPT = timedelta(days=1)


class Heartbeat:
    """This process, as others see it."""

    def __init__(self, kind: SeenProcess.Kind, version: str) -> None:
        self.id, self.kind, self.version = uuid.uuid4(), kind, version
        self.started = timezone.now()
        self._said = 0.0

    def say(self) -> None:
        """Write that it runs, unless it did so less than SAY_SECONDS ago. Raises DatabaseError."""
        if self._said and time.monotonic() - self._said < SAY_SECONDS:
            return
        now = timezone.now()
        about = {
            "kind": self.kind,
            "host": socket.gethostname()[:100],
            "pid": os.getpid(),
            "version": self.version,
            "started": self.started,
            "seen": now,
        }
        SeenProcess.objects.update_or_create(pk=self.id, defaults=about)
        SeenProcess.objects.filter(seen__lt=now - KEPT).delete()
        self._said = time.monotonic()

    def end(self) -> None:
        """Write that it stopped. Raises DatabaseError."""
        SeenProcess.objects.filter(pk=self.id).update(stopped=True, seen=timezone.now())
