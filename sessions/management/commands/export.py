"""`contextlab export`: write a session to a file."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from django.core.management.base import BaseCommand, CommandError
from django.http import Http404

from compaction.redaction.redact import Masker
from sessions.actions.accounts import audit
from sessions.actions.archives.unpack import open_family
from sessions.actions.imports.export import export
from sessions.actions.imports.team_export import StillChanging, export_team
from sessions.api.replay.replay_file import NotBuilt, PageTooLarge, replay_file, shown_run
from sessions.management.named import SESSION_HELP, find_session, find_team
from sessions.models import Session, Team
from sessions.models.masking.masking import rules_of


class Command(BaseCommand):
    help = (
        "Write a session with its sub-agents as JSON lines, which `import` reads. With `--html`, "
        "write its replay as one page that works from the disk. Secrets and personal data are "
        "masked; the last line on stderr counts them. With `--to`, write a whole team."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("session", nargs="?", help=SESSION_HELP)
        parser.add_argument("-o", "--output", type=Path, help="a new file (default: stdout)")
        parser.add_argument("--html", type=Path, help="a new file for the replay, as HTML")
        parser.add_argument(
            "--run",
            default="",
            help="with `--html`: recorded, managed, or the name of a simulated policy "
            "(default: what the session's page shows)",
        )
        parser.add_argument("--unmasked", action="store_true", help="write everything as stored")
        parser.add_argument("--team", default=None, help="team slug (default: the local team)")
        parser.add_argument(
            "--to", type=Path, metavar="FILE",
            help="without a session: a new file for the whole team, unmasked",
        )  # fmt: skip

    def handle(self, *args: Any, session: str | None, output: Path | None, **options: Any) -> None:
        html: Path | None = options["html"]
        if (session is None) == (options["to"] is None):
            raise CommandError("Name a session, or a file with `--to`.", returncode=2)
        if session is None:
            self._team(find_team(options["team"]), options["to"])
            return
        if html and output:
            raise CommandError("Choose `--output` or `--html`, not both.", returncode=2)
        if options["run"] and not html:
            raise CommandError("`--run` needs `--html`: JSON lines have all runs.", returncode=2)
        found = find_session(session, options["team"])
        open_family(found)
        masker = None if options["unmasked"] else Masker(rules_of(found.team_id))
        detail: dict[str, Any] = {"masked": masker is not None}
        if html:
            pieces, detail["run"] = self._page(found, options["run"], masker)
        else:
            pieces = (json.dumps(line).encode() + b"\n" for line in export(found, masker))
        size = 0
        with self._opened(html or output) as file:
            # Before the first piece, because even a partial export has left the system.
            audit.note(found.team, audit.COMMAND, "export.made", found.external_id, **detail)
            try:
                for piece in pieces:
                    file.write(piece.decode())
                    size += len(piece)
            except (PageTooLarge, NotBuilt) as error:
                raise CommandError(str(error), returncode=1) from None
        said = "nothing masked"
        if masker is not None:
            counted = ", ".join(f"{n} {kind}" for kind, n in sorted(masker.masked.items()))
            said = f"masked: {counted or 'nothing found to mask'}"
        self.stderr.write(f"{size:,} bytes; {said}.")

    def _team(self, team: Team, place: Path) -> None:
        try:
            sessions = export_team(team, place, audit.COMMAND)
        except FileExistsError:
            said = f"{place} already exists. Choose another file."
            raise CommandError(said, returncode=2) from None
        except StillChanging as error:
            raise CommandError(str(error), returncode=1) from None
        except OSError as error:
            raise CommandError(f"{place}: {error.strerror}.", returncode=1) from None
        many = f"{sessions:,} session{'' if sessions == 1 else 's'}"
        self.stderr.write(f"{many}, {place.stat().st_size:,} bytes; nothing masked.")

    def _page(
        self, session: Session, named: str, masker: Masker | None
    ) -> tuple[Iterator[bytes], str]:
        """The replay as a page, and the run that it shows."""
        try:
            run = shown_run(session, named)
        except Http404:
            raise CommandError(
                f"There is no run {named!r}. `contextlab show` names those that there are.",
                returncode=2,
            ) from None
        return replay_file(session, run, masker), run.origin

    @contextmanager
    def _opened(self, output: Path | None) -> Iterator[IO[str]]:
        if output is None:
            yield self.stdout  # type: ignore[misc]
            return
        try:
            with output.open("x", encoding="utf-8") as file:
                try:
                    yield file
                except BaseException:
                    output.unlink()  # a partial file would look complete
                    raise
        except FileExistsError:
            raise CommandError(
                f"{output} already exists. Choose another file.", returncode=2
            ) from None
        except OSError as error:
            raise CommandError(f"{output}: {error.strerror}.", returncode=1) from None
