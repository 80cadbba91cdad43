"""`contextlab masking`: a team's masking rules, and whether it masks what comes in and what is
shown."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from compaction.redaction.team_rules import BadRule, TeamRule
from sessions.actions.accounts import audit
from sessions.actions.masking import dry_runs, rules
from sessions.api.masking.masking import describe_all, describe_dry_run
from sessions.management.named import SESSION_HELP, find_session, find_team
from sessions.models import MaskingRule
from sessions.models.masking import counted

STDIN = "printf 'C-[0-9]{6}' | contextlab masking add CUSTOMER --kind pattern"


class Command(BaseCommand):
    help = (
        "Show or change what a team masks. Lists its rules with what they masked, adds, changes "
        "or removes one, counts what they would mask, masks what comes in before it is stored, or "
        "shows content masked."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(
            dest="verb",
            required=True,
            metavar="list|add|change|remove|dry-run|incoming|show|masked",
        )
        listed = verbs.add_parser("list", help="print the rules, and what was masked in 30 days")
        said = "add a rule; its words or pattern come on stdin"
        add = verbs.add_parser("add", help=said, description=f"{said}: {STDIN}")
        said = "replace a rule; its new words or pattern come on stdin"
        change = verbs.add_parser("change", help=said, description=f"{said}: {STDIN}")
        for one in (add, change):
            one.add_argument("name", help="capitals, digits and underscores, such as CUSTOMER")
            one.add_argument(
                "--kind",
                choices=("words", "pattern"),
                default="words",
                help="what stdin has: a word or phrase a line, or one regular expression "
                "(default: %(default)s)",
            )
            one.add_argument("--replacement", default="", help="default: the name in brackets")
        remove = verbs.add_parser("remove", help="remove a rule")
        remove.add_argument("name")
        dry_run = verbs.add_parser("dry-run", help="ask for a dry run, or print the newest")
        dry_run.add_argument("--begin", action="store_true", help="ask the server for a new one")
        incoming = verbs.add_parser("incoming", help="mask what comes in before it is stored")
        incoming.add_argument("state", choices=("on", "off"))
        show = verbs.add_parser("show", help="show content masked, except to agents")
        show.add_argument("state", choices=("masked", "stored"))
        masked = verbs.add_parser("masked", help="print what was masked of a session")
        masked.add_argument("session", help=SESSION_HELP)
        for one in (listed, add, change, remove, dry_run, incoming, show, masked):
            one.add_argument("--team", default=None, help="team slug (default: the local team)")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['verb'].replace('-', '_')}")(options)
        except BadRule as error:
            raise CommandError(str(error), returncode=2) from None

    def _list(self, options: dict[str, Any]) -> None:
        said = describe_all(find_team(options["team"]))
        self.stdout.write(f"Incoming: {'masked' if said['incoming'] else 'stored as sent'}")
        self.stdout.write(f"Shown: {'masked' if said['show_masked'] else 'as stored'}")
        for rule in said["rules"]:
            self.stdout.write(f"{rule['name']}  {rule['kind']}  {rule['replacement']}")
        for one in said["masked"]:
            self.stdout.write(
                f"masked {one['name']}: {one['places']:,} in {one['sessions']:,} sessions"
            )

    def _rule(self, options: dict[str, Any]) -> TeamRule:
        name = options["name"]
        text = sys.stdin.read().strip("\n")
        return TeamRule(name, options["kind"], text, options["replacement"] or f"[{name}]")

    def _add(self, options: dict[str, Any]) -> None:
        rules.add(find_team(options["team"]), self._rule(options), audit.COMMAND)
        self.stdout.write("Added.")

    def _change(self, options: dict[str, Any]) -> None:
        rules.change(self._named(options), self._rule(options), audit.COMMAND)
        self.stdout.write("Changed.")

    def _remove(self, options: dict[str, Any]) -> None:
        rules.remove(self._named(options), audit.COMMAND)
        self.stdout.write("Removed.")

    def _named(self, options: dict[str, Any]) -> MaskingRule:
        team = find_team(options["team"])
        row = MaskingRule.objects.filter(team=team, name=options["name"], removed=None).first()
        if row is None:
            raise CommandError(
                f"There is no rule {options['name']!r}. `contextlab masking list` prints them.",
                returncode=2,
            )
        return row

    def _dry_run(self, options: dict[str, Any]) -> None:
        team = find_team(options["team"])
        job = dry_runs.begin(team, audit.COMMAND) if options["begin"] else dry_runs.newest(team)
        if job is None:
            raise CommandError("There was no dry run. Use `--begin`.", returncode=1)
        said = describe_dry_run(job)
        self.stdout.write(f"{said['state']}: {said['sessions'] or 0:,} sessions searched")
        for name, of in (said["rules"] or {}).items():
            self.stdout.write(f"{name}: {of['matches']:,} in {of['sessions']:,} sessions")

    def _incoming(self, options: dict[str, Any]) -> None:
        team, on = find_team(options["team"]), options["state"] == "on"
        changed = rules.mask_incoming(team, on, audit.COMMAND)
        said = "masked before it is stored" if on else "stored as sent"
        self.stdout.write(f"What comes in is {said}{'' if changed else ', as before'}.")

    def _show(self, options: dict[str, Any]) -> None:
        team, on = find_team(options["team"]), options["state"] == "masked"
        changed = rules.show_masked(team, on, audit.COMMAND)
        said = "masked" if on else "as stored"
        self.stdout.write(f"Content is shown {said}{'' if changed else ', as before'}.")

    def _masked(self, options: dict[str, Any]) -> None:
        found = counted.of_session(find_session(options["session"], options["team"]))
        for name, many in found.items():
            self.stdout.write(f"{name}: {many:,}")
        if not found:
            self.stdout.write("Nothing was masked when this session was stored.")
