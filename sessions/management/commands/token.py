"""`contextlab token`: manage a team's API keys."""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from sessions.actions.accounts.keys import ERASE, SCOPES, create_key, revoke_key
from sessions.actions.accounts.teams import LOCAL_TEAM, team_called
from sessions.api.accounts.keys import key_body
from sessions.management.named import find_team
from sessions.models import Key, Team
from sessions.models.accounts.teams import may


class Command(BaseCommand):
    help = "Create, list and revoke API keys."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="create|list|revoke")
        create = verbs.add_parser("create", help="create a key; its token is shown only once")
        create.add_argument(
            "--team",
            default=LOCAL_TEAM,
            help="team; created if it does not exist (default: %(default)s)",
        )
        create.add_argument("--name", default="", help="name of the key")
        create.add_argument(
            "--scope",
            action="append",
            choices=(*SCOPES, ERASE),
            help="`read` for read-only access, `erase` to also erase for good (default: read and "
            "write)",
        )
        create.add_argument(
            "--owner",
            help="member whose leaving ends the key (default: none: a service account)",
        )
        create.add_argument(
            "--expires", type=_days, metavar="DAYS", help="days until it ends (default: never)"
        )
        listed = verbs.add_parser("list", help="list keys, without their tokens")
        listed.add_argument("--team", help="team slug (default: all teams)")
        revoke = verbs.add_parser("revoke", help="revoke a key immediately")
        revoke.add_argument("prefix", help="the eight characters after clk_")
        for verb in (create, listed, revoke):
            verb.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        answer = getattr(self, f"_{options['verb']}")(options)
        if options["json"]:
            self.stdout.write(json.dumps(answer[0], ensure_ascii=False))
        else:
            self.stdout.write(answer[1])

    def _create(self, options: dict[str, Any]) -> tuple[Any, str]:
        try:
            team, _ = team_called(options["team"])
        except ValueError as problem:
            raise CommandError(str(problem), returncode=2) from None
        days, scopes = options["expires"], options["scope"] or SCOPES
        key, token = create_key(
            team,
            options["name"][:100],
            scopes,
            owner=_member(team, options["owner"], scopes),
            expires=timezone.now() + timedelta(days=days) if days else None,
        )
        shown = {"token": token, "prefix": key.prefix, "team": team.slug, "scopes": key.scopes}
        shown |= {"owner": options["owner"], "expires": key.expires and key.expires.isoformat()}
        said = (
            f"{token}\n\nKey of team {team.slug} with scopes {' and '.join(key.scopes)}. "
            "Save it now: it is not shown again."
        )
        return shown, said

    def _list(self, options: dict[str, Any]) -> tuple[Any, str]:
        keys = Key.objects.with_owner_role().select_related("team", "owner")
        keys = keys.order_by("team__slug", "created")
        if options["team"] is not None:
            keys = keys.filter(team=find_team(options["team"]))
        rows = [_row(key) for key in keys]
        lines = [
            f"{row['prefix']}  {row['team']:<16} {' '.join(row['scopes']):<11} "
            f"{row['owner'] or '-':<12} {_state(row):<26} {row['name']}".rstrip()
            for row in rows
        ]
        return rows, "\n".join(lines) or "No keys. Create one with `contextlab token create`."

    def _revoke(self, options: dict[str, Any]) -> tuple[Any, str]:
        # Accept a whole token, too.
        prefix = options["prefix"].removeprefix("clk_")[:8]
        rows = Key.objects.with_owner_role().select_related("team", "owner")
        key = rows.filter(prefix=prefix).first()
        if key is None:
            raise CommandError(
                "There is no key with that prefix. List keys with `contextlab token list`.",
                returncode=2,
            )
        ended = revoke_key(key)
        key.refresh_from_db()
        said = f"{prefix} was revoked." if ended else f"{prefix} was already revoked."
        return _row(key), said


def _row(key: Key) -> dict[str, Any]:
    revoked = key.revoked.isoformat(timespec="seconds") if key.revoked else None
    return {**key_body(key), "revoked": revoked}


def _state(row: dict[str, Any]) -> str:
    if row["revoked"]:
        return f"revoked {row['revoked'][:16]}"
    if row["ended"]:
        return str(row["ended"])
    used = f"used {row['used'][:16]}" if row["used"] else "never used"
    return f"{used}, expires {row['expires'][:10]}" if row["expires"] else used


def _days(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 36_500:
        raise ArgumentTypeError("use a number of days from 1 to 36500")
    return int(text)


def _member(team: Team, name: str | None, scopes: Sequence[str]) -> User | None:
    """The member with that name who may have a key with these scopes; None without a name. Raises
    CommandError."""
    if name is None:
        return None
    user = User.objects.filter(username=name).first()
    if user is None or not may(user.pk, team, "keys"):
        raise CommandError(
            f"{name!r} is not an owner or editor of team {team.slug}, who may have keys.",
            returncode=2,
        )
    if ERASE in scopes and not may(user.pk, team, ERASE):
        raise CommandError(
            f"{name!r} is not an owner of team {team.slug}, who may erase. Name an owner, or leave "
            "out --owner for a service account.",
            returncode=2,
        )
    return user
