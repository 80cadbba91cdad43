"""`contextlab calibrate`: compare our cache rules with reported usage."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from compaction.cache.calibrate import Compared, ForecastSums, compare
from compaction.simulation.moments import moments
from compaction.tokens import default_counting
from sessions.actions.lab.unstored import recording_of_log
from sessions.figures import money
from sessions.importers import records
from sessions.management.logs import Logged, fullest, sessions_at

_FIGURES = (
    ("calls", "calls"),
    ("breaks", "breaks"),
    ("break_precision", "precision"),
    ("break_recall", "recall"),
    ("within_2_percent_informed", "within 2 %"),
)
_COUNTS = ("found", "missed", "false_alarms")


class Command(BaseCommand):
    help = (
        "Compare our prompt cache rules with the usage in logs. The logs are not stored. "
        "Informed: the estimate knows the usage of earlier calls. Blind: only the messages and "
        "the first call's usage. First calls are excluded."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "paths", nargs="+", type=Path, metavar="PATH", help="log files, or folders"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, paths: list[Path], **options: Any) -> None:
        total, by_format, sessions = ForecastSums(), dict[str, ForecastSums](), []
        logged = (one for path in paths for one in sessions_at(path, self.stderr.write))
        for found in fullest(one for one in logged if _reports(one.session)):
            compared = _compared(found.session)
            if not compared:
                continue
            one = ForecastSums()
            for sums in (total, by_format.setdefault(found.format, ForecastSums()), one):
                sums.add(compared)
            sessions.append(_short(found, one))
        if not sessions:
            raise CommandError(
                "None of these logs has two calls with reported usage. Choose other logs.",
                returncode=2,
            )
        formats = {name: sums.as_dict() for name, sums in by_format.items()}
        if options["json"]:
            output = {**total.as_dict(), "per_format": formats, "per_session": sessions}
            self.stdout.write(json.dumps(output, ensure_ascii=False))
        else:
            self._print({**formats, "all": total.as_dict()})

    def _print(self, rows: dict[str, dict[str, Any]]) -> None:
        heads = [head for _, head in _FIGURES]
        heads += ["read", "informed", "absolute", "blind", "prompt, blind"]
        lines = [_line("", heads)]
        for name, row in rows.items():
            cells = [_cell(row[key]) for key, _ in _FIGURES]
            read, prompt = row["cache_read_reported"], row["prompt_reported"]
            cells += [f"{read / 1e6:,.1f} M"]
            cells += [_off(row["cache_read_informed"], read), _cell(row["error_share_informed"])]
            cells += [_off(row["cache_read_blind"], read), _off(row["prompt_blind"], prompt)]
            lines.append(_line(name, cells))
        for name, row in rows.items():
            lines += ["", *_causes(name, row["causes"])]
        self.stdout.write("\n".join([*lines, "", _WHAT]))


_WHAT = (
    "A cache break is a call that read over 2 % and over 2,000 tokens less than the call "
    "before left in the cache. Reported tokens are measured; informed and blind are the "
    "errors of our estimate, in sum; absolute: of single informed calls, added up, as a share of "
    "the prompts. Paid again: what breaks cost above reading, by reported usage; ≥: without "
    "those that have no price."
)


def _causes(name: str, causes: dict[str, dict[str, Any]]) -> list[str]:
    """The table of a format's causes: those of breaks, and of false alarms."""
    if not causes:
        return [f"{name}: no cache breaks"]
    rows = [
        _line(cause, [*(_cell(row[key]) for key in _COUNTS), _cost(row)])
        for cause, row in causes.items()
    ]
    return [_line(name, ["found", "missed", "false alarms", "paid again"]), *rows]


def _cost(row: dict[str, Any]) -> str:
    """The cost of a cause's breaks, as a lower limit if some have no price."""
    said = money(row["cost_microusd"])
    return f"≥ {said}" if 0 < row["priced"] < row["paid"] else said


def _reports(session: records.Session) -> bool:
    return any(isinstance(one, records.Call) and one.usage for one in session.records)


def _compared(session: records.Session) -> list[Compared]:
    recording = recording_of_log(session)
    if recording is None:
        return []
    value, lived = recording.value, recording.lived
    # Count as if no usage were known: a calibrated ratio would not be blind.
    ratio = default_counting(value.model).permille / recording.permille
    visible = {step.step: round(step.total * ratio) for step in lived.steps}
    return compare(zip(value.calls, moments(lived, value.calls), strict=True), visible)


def _short(found: Logged, sums: ForecastSums) -> dict[str, Any]:
    output = sums.as_dict()
    del output["sessions"]
    model = found.session.model
    return {"id": found.id, "format": found.format, "model": model, **output}


def _off(ours: int, reported: int) -> str:
    return f"{ours / reported - 1:+.2%}" if reported else "–"


def _cell(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.1%}"


def _line(name: str, cells: list[str]) -> str:
    return f"{name:<20}" + "".join(f"{cell:>14}" for cell in cells)
