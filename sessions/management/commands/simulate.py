"""`contextlab simulate`: simulate a policy on logs or stored sessions."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from django.core.management.base import BaseCommand, CommandError

from compaction.cache.economy import Objective
from compaction.policies.origin import filled
from compaction.policies.policy import InvalidPolicy, Policy, from_dict, to_dict
from compaction.policies.presets import FOR_LEAN, PRESETS
from compaction.policies.yaml import UnreadablePolicy, read
from compaction.simulation.recording import Recording
from sessions.actions.lab.simulated_figures import figures_of, recorded_figures, recording_of
from sessions.actions.lab.unstored import recording_of_log
from sessions.actions.policies.policies import UnknownPolicy, named_version
from sessions.figures import change
from sessions.management.defined import defined
from sessions.management.logs import Logged, fullest, sessions_at
from sessions.management.named import find_session, find_team
from sessions.models import Session
from sessions.models.lab.simulated_sums import sums


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A stored session, as a source next to log sessions."""

    session: Session

    @property
    def id(self) -> str:
        """The external id."""
        return self.session.external_id

    @property
    def length(self) -> int:
        """Its size, in messages."""
        return self.session.message_count


def _recording(source: Logged | StoredSession) -> Recording | None:
    """Read a source completely; None without a model call."""
    if isinstance(source, Logged):
        return recording_of_log(source.session)
    return recording_of(source.session) if source.session.step_count else None


class Command(BaseCommand):
    help = (
        "Simulate a policy on sessions. Prints tokens, cost, cache use, and needed-later recall. "
        "Logs are read, not stored. The agent is assumed to behave as recorded."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "sessions",
            nargs="+",
            metavar="PATH|SESSION",
            help="log files, folders, or ids of stored sessions",
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
            help="optimize for cost (cheap) or context size (lean), overriding the policy; "
            "balanced has a variant for each",
        )
        parser.add_argument("--team", default=None, help="team slug (default: the local team)")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, sessions: list[str], **options: Any) -> None:
        find_team(options["team"])  # fail before reading anything
        objective = options["objective"]
        policy = _policy(_for(objective, options["policy"]), options["team"])
        heeded = objective is None or policy.heeds_objective
        if not heeded:
            self.stderr.write(
                f"--objective {objective} has no effect: no step of {policy.name} uses it."
            )
        elif objective is not None:
            policy = replace(policy, objective=objective)
        sources = fullest(self._sources(sessions, options["team"]))
        rows: list[dict[str, Any]] = []
        lived: list[dict[str, Any]] = []
        acted: Counter[str] = Counter()
        for number, source in enumerate(sources, start=1):
            self._progress(number, len(sources))
            recording = _recording(source)
            if recording is not None:
                found = figures_of(recording, policy)
                rows.append({"id": source.id, **found.figures})
                lived.append(recorded_figures(recording))
                acted.update(edit.strategy for made in found.run.revisions for edit in made.edits)
        if not rows:
            raise CommandError(
                "None of these contains a session with a model call. Choose others.", returncode=2
            )
        answer = {
            "policy": to_dict(policy),
            "asked": {
                "policy": options["policy"],
                "objective": objective,
                "heeded": heeded,
            },
            "basis": "simulated",
            "sessions": len(rows),
            **sums(rows),
            "recorded": sums(lived),
            "per_session": rows,
        }
        if options["json"]:
            self.stdout.write(json.dumps(answer, ensure_ascii=False))
        else:
            self._print(policy, answer, acted)

    def _sources(self, named: list[str], team: str | None) -> Iterator[Logged | StoredSession]:
        for name in named:
            path = Path(name)
            if path.exists():
                yield from sessions_at(path, self.stderr.write)
            else:
                yield StoredSession(find_session(name, team))

    def _progress(self, done: int, total: int) -> None:
        if self.stderr.isatty():
            self.stderr.write(f"\r{done}/{total} sessions", ending="\n" if done == total else "")

    def _print(self, policy: Policy, answer: dict[str, Any], acted: Counter[str]) -> None:
        heads = ("session", "steps", "tokens", "cost", "in context", "named", "retriev.", "lost")
        lines = [_line(heads)]
        lines += [_line((row["id"], *_cells(row))) for row in answer["per_session"]]
        if answer["sessions"] > 1:
            lines.append(_line((f"all {answer['sessions']}", *_cells(answer))))
        self.stdout.write("\n".join(lines))
        share = answer["cache_read_share"]
        unpriced = answer["sessions"] - answer["priced"]
        if unpriced and answer["priced"]:
            self.stdout.write(
                f"{_many(unpriced, 'session')} without a known price, excluded from cost."
            )
        self.stdout.write(
            f"\nSimulated under {policy.name}; changes are against the recorded baseline.\n"
            f"{_compared(answer, answer['recorded'])}{_edits(acted)}\n{defined(answer)}\n"
            f"{_many(answer['compactions'], 'compaction')}, "
            f"{answer['read_back_tokens']:,} tokens to read back, "
            f"{'–' if share is None else f'{share:.0%}'} of prompts read from the cache, "
            f"{answer['ms_per_step']:.2f} ms per step."
        )


def _for(objective: Objective | None, name: str) -> str:
    """The preset variant for an objective, if the named preset has one; otherwise the name
    itself."""
    if objective == "lean":
        return FOR_LEAN.get(name, name)
    return next((cheap for cheap, lean in FOR_LEAN.items() if objective and name == lean), name)


def _policy(named: str, team: str | None) -> Policy:
    """A preset, a policy file, or a policy of the team. Raises CommandError."""
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
        raise CommandError(f"{named!r} is not a file, and {error}.", returncode=2) from None
    except UnicodeDecodeError:
        raise CommandError(f"{named} is not UTF-8 text. Convert it.", returncode=2) from None
    except OSError as error:
        raise CommandError(f"{named} cannot be read: {error.strerror}.", returncode=1) from None
    except (UnreadablePolicy, InvalidPolicy) as error:
        raise CommandError(f"{named}: {error}.", returncode=2) from None


def _compared(mine: dict[str, Any], recorded: dict[str, Any]) -> str:
    """A table of policy, recording and oracle: cost, cost with read-backs, and what stays."""
    cost, again = mine["cost_microusd"], mine["read_backs_microusd"]
    charged = None if cost is None or again is None else cost + again
    base, best = mine["cost_recorded_microusd"], recorded["oracle_microusd"]
    lines = [
        ("", "cost", "read-backs incl.", "in context", "edits", "words"),
        ("policy", _money(cost, base), _money(charged, base), *_stay(mine)),
        ("recorded", _money(base, None), "–", *_stay(recorded)),
    ]
    if best is not None:  # it keeps every need and edit, by definition
        lines.append(("oracle", _money(best, base), "–", "100.0%", "100.0%", "–"))
    text = "\n".join(
        f"{head:<10}" + "".join(f"{cell:>18}" for cell in cells) for head, *cells in lines
    )
    text += _ttl_apart(cost, mine["cost_recorded_ttl_microusd"], base)
    if cost is not None and base is not None and best is not None and best < base:
        text += f"\nShare of the oracle's saving: {(base - cost) / (base - best):.0%}."
    return f"{text}\n"


def _ttl_apart(cost: int | None, ttl: int | None, base: int | None) -> str:
    """What the policy's TTL alone changes, and what its edits do."""
    if cost is None or ttl is None or not base or ttl == base:
        return ""
    alone, edits = ttl / base - 1, (cost - ttl) / base
    return f"\nOf the change in cost, {alone:+.1%} by the TTL and {edits:+.1%} by edits."


def _stay(sums: dict[str, Any]) -> tuple[str, ...]:
    """Shares of needs in context, feasible edits, and facts in the agent's words in context."""
    keys = ("in_context", "edits_feasible", "said_in_context")
    return tuple("–" if sums[key] is None else f"{sums[key]:.1%}" for key in keys)


def _edits(acted: Counter[str]) -> str:
    """Which strategies acted, and how often."""
    if not acted:
        return "No strategy acted."
    listed = ", ".join(f"{many:,} by {name}" for name, many in acted.most_common())
    return f"{_many(acted.total(), 'edit')}: {listed}."


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{row['steps']:,}",
        f"{row['tokens_sent']:,}{_change(row['tokens_sent'], row['tokens_sent_recorded'])}",
        _money(row["cost_microusd"], row["cost_recorded_microusd"]),
        *(
            "–" if row[key] is None or not row["needs"] else f"{row[key]:.1%}"
            for key in ("in_context", "named", "retrievable", "lost")
        ),
    )


def _money(cost: int | None, recorded: int | None) -> str:
    return "unknown" if cost is None else f"${cost / 1e6:.2f}{_change(cost, recorded)}"


def _change(value: int, before: int | None) -> str:
    return f" {change(value / before - 1)}" if before else ""


def _line(cells: tuple[str, ...]) -> str:
    widths = (36, 6, 18, 14, 9, 7, 9, 7)
    first = cells[0] if len(cells[0]) <= widths[0] else f"{cells[0][: widths[0] - 1]}…"
    rest = (f"{cell:>{width}}" for cell, width in zip(cells[1:], widths[1:], strict=True))
    return f"{first:<{widths[0]}} {' '.join(rest)}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
