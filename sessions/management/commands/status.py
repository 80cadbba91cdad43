"""`contextlab status`: queues, processes, storage, slow queries and failed jobs."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.core.serializers.json import DjangoJSONEncoder

from sessions.actions.operations.status import status
from sessions.figures import ago, duration, size


class Command(BaseCommand):
    help = "Show queues, processes, storage, slow queries and failed jobs of all teams."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        found = status()
        if options["json"]:
            self.stdout.write(json.dumps(found, cls=DjangoJSONEncoder))
            return
        for row in found["queues"]:
            oldest = row["oldest_seconds"]
            waits = "" if oldest is None else f", oldest {duration(oldest)}"
            self.stdout.write(
                f"queue {row['queue']}: {row['queued']} queued, {row['running']} running{waits}"
            )
        for row in found["processes"]:
            where = f"{row['kind']} {row['host']}:{row['pid']} {row['version']}"
            self.stdout.write(f"{where}: {row['state']}, seen {ago(row['seen'])}")
        for row in found["storage"]["teams"]:
            self.stdout.write(f"team {row['team']}: ≈ {size(row['bytes'])} of content")
        if found["storage"]["database_bytes"] is not None:
            self.stdout.write(f"database: {size(found['storage']['database_bytes'])}")
        if where := found["storage"]["objects"]:
            left = found["storage"]["objects_to_remove"]
            self.stdout.write(f"objects: {where}, {left} to remove")
        for row in found["failed"]:
            self.stdout.write(
                f"failed {row['kind']} of {row['team']}: {row['title']} ({row['id']})"
            )
