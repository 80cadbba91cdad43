"""`contextlab invite`: print an invitation URL, for example for a team's first owner."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_email
from django.urls import reverse

from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.invitations import VALID, invite, usual_role
from sessions.actions.accounts.teams import LOCAL_TEAM, team_called
from sessions.actions.web.addresses import base_url
from sessions.models import Membership


class Command(BaseCommand):
    help = (
        "Create an invitation to a team and print its URL. The recipient creates an account "
        "and joins; the URL works once."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--team",
            default=LOCAL_TEAM,
            help="team; created if it does not exist (default: %(default)s)",
        )
        parser.add_argument(
            "--role",
            choices=Membership.Role.values,
            help="default: editor; owner for the first account of a team",
        )
        parser.add_argument("--email", default="", help="intended recipient; no mail is sent")
        parser.add_argument(
            "--url",
            default=base_url(),
            help="URL of this server (default: %(default)s)",
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        base = options["url"].rstrip("/")
        if not base.startswith(("http://", "https://")):
            raise CommandError("--url must begin with http:// or https://.", returncode=2)
        try:
            if options["email"]:
                validate_email(options["email"])
            team, _ = team_called(options["team"])
        except ValidationError:
            raise CommandError("--email is not a valid email address.", returncode=2) from None
        except ValueError as problem:
            raise CommandError(str(problem), returncode=2) from None
        role = options["role"] or usual_role(team)
        made, token = invite(team, role, COMMAND, options["email"])
        address = f"{base}{reverse('invitation', args=[token])}"
        if options["json"]:
            output = {
                "url": address,
                "team": team.slug,
                "role": made.role,
                "email": made.email,
                "expires": made.expires.isoformat(timespec="seconds"),
            }
            self.stdout.write(json.dumps(output, ensure_ascii=False))
            return
        self.stdout.write(
            f"{address}\n\nValid once, within {VALID.days} days, to join team {team.slug} as "
            f"{made.role}. It is not shown again."
        )
