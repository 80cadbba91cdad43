"""`contextlab token`: keys with which programs reach the API of a team."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from sessions.actions.keys import SCOPES, create_key, revoke_key
from sessions.actions.teams import LOCAL_TEAM, team_called
from sessions.management.named import find_team
from sessions.models import Key


class Command(BaseCommand):
    help = "Make, list and revoke the keys with which programs reach the API."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="create|list|revoke")
        create = verbs.add_parser("create", help="make a key; its token is shown this once")
        create.add_argument(
            "--team",
            default=LOCAL_TEAM,
            help="whose it is; made if there is none of that name (default: %(default)s)",
        )
        create.add_argument("--name", default="", help="what you call the key")
        create.add_argument(
            "--scope",
            action="append",
            choices=SCOPES,
            help="`read` only looks; the default may write too",
        )
        listed = verbs.add_parser("list", help="show the keys, without their tokens")
        listed.add_argument("--team", help="slug of a team (default: all teams)")
        revoke = verbs.add_parser("revoke", help="end a key at once")
        revoke.add_argument("prefix", help="the first eight characters after clk_")
        for verb in (create, listed, revoke):
            verb.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        told = getattr(self, f"_{options['verb']}")(options)
        if options["json"]:
            self.stdout.write(json.dumps(told[0], ensure_ascii=False))
        else:
            self.stdout.write(told[1])

    def _create(self, options: dict[str, Any]) -> tuple[Any, str]:
        try:
            team, _ = team_called(options["team"])
        except ValueError as problem:
            raise CommandError(str(problem), returncode=2) from None
        key, token = create_key(team, options["name"][:100], options["scope"] or SCOPES)
        shown = {"token": token, "prefix": key.prefix, "team": team.slug, "scopes": key.scopes}
        said = (
            f"{token}\n\nA key of team {team.slug} that may {' and '.join(key.scopes)}. "
            "Keep it: it is not shown again."
        )
        return shown, said

    def _list(self, options: dict[str, Any]) -> tuple[Any, str]:
        keys = Key.objects.select_related("team").order_by("team__slug", "created")
        if options["team"] is not None:
            keys = keys.filter(team=find_team(options["team"]))
        rows = [_row(key) for key in keys]
        lines = [
            f"{row['prefix']}  {row['team']:<16} {' '.join(row['scopes']):<11} "
            f"{_state(row):<26} {row['name']}".rstrip()
            for row in rows
        ]
        return rows, "\n".join(lines) or "There is no key yet: `contextlab token create`."

    def _revoke(self, options: dict[str, Any]) -> tuple[Any, str]:
        # Who pastes the whole token means its prefix.
        prefix = options["prefix"].removeprefix("clk_")[:8]
        key = Key.objects.select_related("team").filter(prefix=prefix).first()
        if key is None:
            raise CommandError(
                "There is no key of that prefix; `contextlab token list` shows them.", returncode=2
            )
        ended = revoke_key(key)
        key.refresh_from_db()
        said = f"{prefix} is revoked." if ended else f"{prefix} was revoked already."
        return _row(key), said


def _row(key: Key) -> dict[str, Any]:
    return {
        "prefix": key.prefix,
        "team": key.team.slug,
        "name": key.name,
        "scopes": key.scopes,
        "created": key.created.isoformat(timespec="seconds"),
        "used": key.used.isoformat(timespec="minutes") if key.used else None,
        "revoked": key.revoked.isoformat(timespec="seconds") if key.revoked else None,
    }


def _state(row: dict[str, Any]) -> str:
    if row["revoked"]:
        return f"revoked {row['revoked'][:16]}"
    return f"used {row['used'][:16]}" if row["used"] else "never used"
