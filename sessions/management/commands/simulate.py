"""`contextlab simulate`: what a policy would have made of logs, or of stored sessions."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from django.core.management.base import BaseCommand, CommandError

from compaction.cache.economy import Objective
from compaction.policies.origin import filled
from compaction.policies.policy import InvalidPolicy, Policy, from_dict, to_dict
from compaction.policies.presets import FOR_LEAN, PRESETS
from compaction.policies.yaml import Unreadable, read
from sessions.actions.policies import UnknownPolicy, named_version
from sessions.actions.simulated_figures import Recording, figures_of, recording_of
from sessions.actions.unstored import recording_of_log
from sessions.management.logs import Logged, fullest, sessions_at
from sessions.management.named import find_team
from sessions.models import Session
from sessions.models.simulated_sums import sums


@dataclass(frozen=True, slots=True)
class Stored:
    """A session of the store, beside those of logs."""

    session: Session

    @property
    def id(self) -> str:
        """The external id."""
        return self.session.external_id

    @property
    def length(self) -> int:
        """How much is known of it, in messages."""
        return self.session.message_count


def _recording(source: Logged | Stored) -> Recording | None:
    """Read whole; None for a session without a model call."""
    if isinstance(source, Logged):
        return recording_of_log(source.session)
    return recording_of(source.session) if source.session.step_count else None


class Command(BaseCommand):
    help = (
        "Try a policy on sessions and print what it would have come to: tokens, cost, cache, and "
        "what the agent needed later. Logs are read and not stored. Everything is simulated: the "
        "agent is taken to behave as it was recorded."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "sessions",
            nargs="+",
            metavar="PATH|SESSION",
            help="log files, folders of them, or ids of stored sessions",
        )
        parser.add_argument(
            "--policy",
            required=True,
            metavar="NAME|FILE",
            help=f"{', '.join(PRESETS)}, a policy of the team (name, name@3), or a YAML or JSON "
            "file",
        )
        parser.add_argument(
            "--objective",
            choices=get_args(Objective),
            help="what is to be little, dollars or tokens, whatever the policy says; balanced has "
            "numbers of its own for each",
        )
        parser.add_argument(
            "--team", default=None, help="slug of the team (default: the local one)"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, sessions: list[str], **options: Any) -> None:
        find_team(options["team"])  # before anything is read
        objective = options["objective"]
        policy = _policy(_for(objective, options["policy"]), options["team"])
        heeded = objective is None or policy.heeds_objective
        if not heeded:
            self.stderr.write(
                f"--objective {objective} changes nothing: no step of {policy.name} asks for it."
            )
        elif objective is not None:
            policy = replace(policy, objective=objective)
        sources = fullest(self._sources(sessions, options["team"]))
        rows = []
        for number, source in enumerate(sources, start=1):
            self._progress(number, len(sources))
            recording = _recording(source)
            if recording is not None:
                rows.append({"id": source.id, **figures_of(recording, policy).figures})
        if not rows:
            raise CommandError("None of these holds a session with a model call.", returncode=2)
        told = {
            "policy": to_dict(policy),
            "asked": {
                "policy": options["policy"],
                "objective": objective,
                "heeded": heeded,
            },
            "basis": "simulated",
            "sessions": len(rows),
            **sums(rows),
            "per_session": rows,
        }
        if options["json"]:
            self.stdout.write(json.dumps(told, ensure_ascii=False))
        else:
            self._tell(policy, told)

    def _sources(self, named: list[str], team: str | None) -> Iterator[Logged | Stored]:
        for name in named:
            path = Path(name)
            if path.exists():
                yield from sessions_at(path, self.stderr.write)
            else:
                yield _stored(name, team)

    def _progress(self, done: int, total: int) -> None:
        if self.stderr.isatty():
            self.stderr.write(f"\r{done}/{total} sessions", ending="\n" if done == total else "")

    def _tell(self, policy: Policy, told: dict[str, Any]) -> None:
        heads = ("session", "steps", "tokens", "cost", "in place", "named", "retriev.", "lost")
        lines = [_line(heads)]
        lines += [_line((row["id"], *_cells(row))) for row in told["per_session"]]
        if told["sessions"] > 1:
            lines.append(_line((f"all {told['sessions']}", *_cells(told))))
        self.stdout.write("\n".join(lines))
        share = told["cache_read_share"]
        unpriced = told["sessions"] - told["priced"]
        if unpriced and told["priced"]:
            self.stdout.write(f"{_many(unpriced, 'session')} without a known price: in no cost.")
        self.stdout.write(
            f"\nSimulated under {policy.name}; changes are against the sessions as recorded.\n"
            f"{_many(told['compactions'], 'compaction')}, "
            f"{told['read_back_tokens']:,} tokens to be read back, "
            f"{'–' if share is None else f'{share:.0%}'} of prompts read from the cache, "
            f"{told['ms_per_step']:.2f} ms a step."
        )


def _for(objective: Objective | None, name: str) -> str:
    """The preset that has its own numbers for an objective, where one is named; else the same."""
    if objective == "lean":
        return FOR_LEAN.get(name, name)
    return next((cheap for cheap, lean in FOR_LEAN.items() if objective and name == lean), name)


def _policy(named: str, team: str | None) -> Policy:
    """A preset, what a file says, or a policy of the team. Raises CommandError."""
    path = Path(named)
    try:
        if path.is_file():
            given = read(path.read_text(encoding="utf-8"))
            if given.based_on and given.based_on not in PRESETS:
                raise InvalidPolicy("based_on", f"must be one of {', '.join(PRESETS)}")
            base = to_dict(PRESETS[given.based_on]) if given.based_on else None
            return from_dict(filled({"name": path.stem, **given.document}, base))
        if named in PRESETS:
            return PRESETS[named]
        return from_dict(named_version(find_team(team), named).document)
    except UnknownPolicy as error:
        raise CommandError(f"{named!r} is no file, and {error}.", returncode=2) from None
    except UnicodeDecodeError:
        raise CommandError(f"{named} is no text in UTF-8.", returncode=2) from None
    except OSError as error:
        raise CommandError(f"{named} cannot be read: {error.strerror}.", returncode=1) from None
    except (Unreadable, InvalidPolicy) as error:
        raise CommandError(f"{named}: {error}.", returncode=2) from None


def _stored(name: str, team: str | None) -> Stored:
    found = Session.objects.for_team(find_team(team)).named(name)
    if found is None:
        raise CommandError(
            f"There is no file, and in this team no session, called {name!r}.", returncode=2
        )
    return Stored(found)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{row['steps']:,}",
        f"{row['tokens_sent']:,}{_change(row['tokens_sent'], row['tokens_sent_unmanaged'])}",
        _money(row["cost_microusd"], row["cost_unmanaged_microusd"]),
        *(
            "–" if row[key] is None or not row["needs"] else f"{row[key]:.1%}"
            for key in ("in_place", "named", "retrievable", "lost")
        ),
    )


def _money(cost: int | None, recorded: int | None) -> str:
    return "unknown" if cost is None else f"${cost / 1e6:.2f}{_change(cost, recorded)}"


def _change(value: int, before: int | None) -> str:
    return f" {value / before - 1:+.0%}" if before else ""


def _line(cells: tuple[str, ...]) -> str:
    widths = (36, 6, 18, 14, 9, 7, 9, 7)
    first = cells[0] if len(cells[0]) <= widths[0] else f"{cells[0][: widths[0] - 1]}…"
    rest = (f"{cell:>{width}}" for cell, width in zip(cells[1:], widths[1:], strict=True))
    return f"{first:<{widths[0]}} {' '.join(rest)}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
