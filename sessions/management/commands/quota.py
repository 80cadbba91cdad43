"""`contextlab quota`: show or set what a team may use."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.core.serializers.json import DjangoJSONEncoder

from sessions.actions.accounts.audit import COMMAND
from sessions.actions.operations.quotas import LIMITS, set_quota, used_by
from sessions.management.named import find_team


class Command(BaseCommand):
    help = "Show what a team may use and has used, or set limits; `none` removes one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--team", help="team slug (default: the local team)")
        parser.add_argument("--storage-bytes", metavar="N", help="content as stored, compressed")
        parser.add_argument("--requests-minute", metavar="N", help="API requests with a key")
        parser.add_argument("--requests-day", metavar="N", help="API requests with a key")
        parser.add_argument("--tokens-month", metavar="N", help="tokens that agents report")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        team = find_team(options["team"])
        given = {name: options[name] for name in LIMITS if options[name] is not None}
        if given:
            set_quota(team, {name: _limit(name, text) for name, text in given.items()}, COMMAND)
        used = used_by(team)
        if options["json"]:
            rows = {one.quota: one._asdict() for one in used}
            self.stdout.write(json.dumps({"team": team.slug, **rows}, cls=DjangoJSONEncoder))
            return
        for one in used:
            limit = "no limit" if one.limit is None else f"of {one.limit:,}"
            self.stdout.write(f"{one.name}: {one.used:,} {limit}")


def _limit(name: str, text: str) -> int | None:
    if text == "none":
        return None
    if not text.isdecimal() or len(text) > 18:
        raise CommandError(
            f"--{name.replace('_', '-')} is a whole number or none, not {text!r}.", returncode=2
        )
    return int(text)
