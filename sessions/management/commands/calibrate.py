"""`contextlab calibrate`: how far our rules of the prompt cache hold for what logs report."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from compaction.cache.calibrate import Compared, Sums, compare
from compaction.cache.moments import moments
from compaction.tokens import default_counting
from sessions.actions.unstored import recording_of_log
from sessions.importers import records
from sessions.management.logs import Logged, fullest, sessions_at

_FIGURES = (
    ("calls", "calls"),
    ("breaks", "breaks"),
    ("break_precision", "precision"),
    ("break_recall", "recall"),
    ("within_2_percent_informed", "within 2 %"),
)


class Command(BaseCommand):
    help = (
        "Compare what our rules expect of the prompt cache with what logs report. Logs are read "
        "and not stored. Informed: told before each call, with the usage of earlier calls of its "
        "session. Blind: with the messages and the first call's usage only. First calls, before "
        "which nothing is known, are compared in neither."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "paths", nargs="+", type=Path, metavar="PATH", help="log files, or folders"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, paths: list[Path], **options: Any) -> None:
        total, by_format, sessions = Sums(), dict[str, Sums](), []
        logged = (one for path in paths for one in sessions_at(path, self.stderr.write))
        for found in fullest(one for one in logged if _reports(one.session)):
            compared = _compared(found.session)
            if not compared:
                continue
            one = Sums()
            for sums in (total, by_format.setdefault(found.format, Sums()), one):
                sums.add(compared)
            sessions.append(_short(found, one))
        if not sessions:
            raise CommandError("None of these holds two calls with reported usage.", returncode=2)
        formats = {name: sums.told() for name, sums in by_format.items()}
        if options["json"]:
            told = {**total.told(), "per_format": formats, "per_session": sessions}
            self.stdout.write(json.dumps(told, ensure_ascii=False))
        else:
            self._tell({**formats, "all": total.told()})

    def _tell(self, rows: dict[str, dict[str, Any]]) -> None:
        heads = [*(head for _, head in _FIGURES), "read", "informed", "blind", "prompt, blind"]
        lines = [_line("", heads)]
        for name, row in rows.items():
            cells = [_cell(row[key]) for key, _ in _FIGURES]
            read, prompt = row["cache_read_reported"], row["prompt_reported"]
            cells += [f"{read / 1e6:,.1f} M"]
            cells += [_off(row[f"cache_read_{regime}"], read) for regime in ("informed", "blind")]
            cells += [_off(row["prompt_blind"], prompt)]
            lines.append(_line(name, cells))
        causes = ", ".join(f"{cause} {n}" for cause, n in rows["all"]["causes"].items())
        lines += ["", f"Causes of the breaks: {causes or 'none'}.", _WHAT]
        self.stdout.write("\n".join(lines))


_WHAT = (
    "A break is a call that read over 2 % and 2,000 tokens less than the call before left. "
    "Reported tokens are measured; informed and blind are how far our estimate is off."
)


def _reports(session: records.Session) -> bool:
    return any(isinstance(one, records.Call) and one.usage for one in session.records)


def _compared(session: records.Session) -> list[Compared]:
    recording = recording_of_log(session)
    if recording is None:
        return []
    value, lived = recording.value, recording.lived
    # Counted as if no usage were known: a ratio that it taught would not be blind.
    ratio = default_counting(value.model).permille / recording.permille
    visible = {step.step: round(step.total * ratio) for step in lived.steps}
    return compare(zip(value.calls, moments(lived, value.calls), strict=True), visible)


def _short(found: Logged, sums: Sums) -> dict[str, Any]:
    told = sums.told()
    del told["sessions"]
    model = found.session.model
    return {"id": found.id, "format": found.format, "model": model, **told}


def _off(ours: int, reported: int) -> str:
    return f"{ours / reported - 1:+.2%}" if reported else "–"


def _cell(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.1%}"


def _line(name: str, cells: list[str]) -> str:
    return f"{name:<20}" + "".join(f"{cell:>14}" for cell in cells)
