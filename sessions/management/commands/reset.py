"""`contextlab reset`: print a link with which a person sets a new password."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from sessions.actions.accounts.audit import COMMAND, note_for
from sessions.actions.accounts.resets import NotTheirs, path_for
from sessions.actions.accounts.second_factor import remove_second_factor
from sessions.actions.web.addresses import base_url


class Command(BaseCommand):
    help = (
        "Print a link to set a new password, or remove a second factor. The link works once, "
        "within a day. Remove the second factor of a person who lost the phone and the recovery "
        "codes."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="user name")
        parser.add_argument(
            "--url", default=base_url(), help="URL of this server (default: %(default)s)"
        )
        parser.add_argument(
            "--second-factor", action="store_true", help="remove the second factor instead"
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["name"]).first()
        if user is None:
            raise CommandError(
                f"There is no account {options['name']!r}. Names are under Settings, Members.",
                returncode=2,
            )
        if options["second_factor"]:
            removed = remove_second_factor(user, COMMAND)
            said = "was removed" if removed else "was never set up"
            answer = json.dumps({"removed": removed}) if options["json"] else ""
            self.stdout.write(answer or f"The second factor of {user.username} {said}.")
            return
        try:
            url = options["url"].rstrip("/") + path_for(user)
        except NotTheirs as problem:
            raise CommandError(str(problem)) from None
        note_for(user, COMMAND, "reset.made", user)
        if options["json"]:
            self.stdout.write(json.dumps({"url": url, "hours": 24}))
        else:
            self.stdout.write(f"{url}\n\nSets a new password for {user.username}, once in a day.")
