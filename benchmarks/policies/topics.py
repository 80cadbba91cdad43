"""New topics: what the judgement without a model finds, and how often it is wrong.

    python -m benchmarks.policies.topics /path/to/logs [--show]

Reads every log below the folders that an importer knows, conversations that other JSON files hold
as lists of messages with roles, and histories of Aider. *Continues*: every message of a person
inside a session but its first, after up to three rounds before it. *New*: the first message of
another session after the last rounds of one, up to three of the same project and six of any, drawn
with a fixed seed.
Left out: texts that programs write in a person's name, scaffolds that open every session with one
template, sessions that begin with the same words. Sessions fall into two halves by their length in
turn: weights were chosen on the first, the second tests them; nothing was chosen on Aider's, whose
one person has no other projects to draw from. The messages are not labeled, so
a person who does change the topic counts as a false alarm: --show prints those for judging by hand.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compaction.context import wire
from compaction.topic.topic import ROUNDS, Round, is_new, is_said
from sessions.importers import NotALog, parse, records

SEED, SAME_PROJECT, ANY = 5, 3, 6
SCAFFOLDS = ("swe-agent-traj", "mini-swe-agent", "openai-messages")
_AIDER = "# aider chat started at "
ROLES = {"human": "user", "ai": "assistant", "gemini": "assistant", "model": "assistant"}
MACHINE = ("Operation stopped", "EXECUTION RESULT")


@dataclass(frozen=True)
class Talk:
    """A session's rounds: `group` tells people from simulated customers, and from whom nothing was
    chosen on."""

    name: str
    project: str
    group: str
    rounds: tuple[Round, ...]


def talks(folder: Path) -> Iterator[Talk]:
    """Yield every session below a folder with a message of a person, each opening of a log once."""
    seen: set[str] = set()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        parts = path.relative_to(folder).parts
        if parts[0] in ("openhands", "multi-agent", "otel"):
            continue  # one file per call, agents that talk to each other, spans
        project = parts[1] if len(parts) > 2 else parts[0]
        group = "simulated" if parts[0].startswith("tau") else "people"
        group = "unseen" if parts[0] == "aider" else group
        for number, rounds in enumerate(_conversations(path)):
            heard = tuple(
                one
                for one in rounds
                if is_said(one.said) and not one.said.lstrip().startswith(MACHINE)
            )
            key = "\0".join(one.said for one in heard)
            if heard and key not in seen:
                seen.add(key)
                yield Talk(f"{path.name}#{number}", project, group, heard)


def _conversations(path: Path) -> Iterator[list[Round]]:
    data = path.read_bytes()
    try:
        log = parse(data, path.name)
    except NotALog:
        if path.suffix == ".md":
            yield from (_rounds(_aider(one)) for one in data.decode().split(_AIDER)[1:])
        for found in _lists(_read(data)):
            yield _rounds((_role(one), _text(one)) for one in found)
        return
    for session in log.sessions if log.format not in SCAFFOLDS else ():
        said = [one for one in session.records if isinstance(one, records.Message)]
        yield _rounds(
            ("user" if one.human else one.role * (one.role != "user"), _of(one)) for one in said
        )


def _aider(session: str) -> Iterator[tuple[str, str]]:
    """Return who said what; program commands are left out unless they ask a model."""
    said, role = "", ""
    for line in [*session.splitlines(), "> "]:
        by = {"####": "user", ">": ""}.get(line.split(" ", 1)[0], "assistant")
        by = role if not line.strip() else by
        if by != role:
            asked = said.removeprefix("/ask ").removeprefix("/code ").removeprefix("/architect ")
            if said.strip() and not asked.startswith(("/", "!")):
                yield role, asked
            said, role = "", by
        said += f"{line.removeprefix('#### ') if by == 'user' else line}\n"


def _of(message: records.Message) -> str:
    texts = [wire.text_of(one) for one in message.blocks if wire.type_of(one) == "text"]
    # Of what a model wrote, the last text alone.
    return "\n".join(texts if message.human else texts[-1:])


def _rounds(said: Iterator[tuple[str, str]]) -> list[Round]:
    rounds: list[Round] = []
    for role, text in said:
        if role == "user" and text.strip():
            rounds.append(Round(text))
        elif role == "assistant" and text.strip() and rounds:
            rounds[-1] = Round(rounds[-1].said, text)
    return rounds


def _read(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        lines = []
        for line in data.splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:
                continue
        return lines


def _lists(value: Any) -> Iterator[list[Any]]:
    if isinstance(value, dict):
        for part in value.values():
            yield from _lists(part)
    elif isinstance(value, list):
        roles = [_role(one) for one in value]
        if len(value) > 2 and "user" in roles and "assistant" in roles:
            yield value
        else:
            for part in value:
                yield from _lists(part)


def _role(message: Any) -> str:
    if not isinstance(message, dict):
        return ""
    inner = [message.get(key) for key in ("info", "message")]
    places = [message, *(one for one in inner if isinstance(one, dict))]
    role = next((one["role"] for one in places if isinstance(one.get("role"), str)), None)
    role = role or message.get("type")
    return ROLES.get(role, role) if isinstance(role, str) else ""


def _text(message: dict[str, Any]) -> str:
    inner = message.get("message")
    given = message.get("content", message.get("parts"))
    given = inner.get("content") if given is None and isinstance(inner, dict) else given
    if isinstance(given, str):
        return given
    parts = [one for one in given or () if isinstance(one, dict)] if isinstance(given, list) else []
    texts = [one.get("text") for one in parts if one.get("type") in ("text", "input_text")]
    return "\n".join(text for text in texts if isinstance(text, str))


@dataclass(frozen=True)
class Case:
    """A message after some rounds, and whether it begins a new topic."""

    group: str
    new: str
    rounds: tuple[Round, ...]
    said: str


def cases(found: list[Talk]) -> list[list[Case]]:
    """Return both halves; each draws its splices from its own sessions."""
    halves: list[list[Case]] = [[], []]
    dice = random.Random(SEED)
    for group in sorted({one.group for one in found}):
        ordered = sorted(
            (one for one in found if one.group == group),
            key=lambda one: (-len(one.rounds), one.name),
        )
        for half in (0, 1):
            pool = ordered[half::2]
            for one in pool:
                for place in range(1, len(one.rounds)):
                    before = one.rounds[max(place - ROUNDS, 0) : place]
                    halves[half].append(Case(group, "", before, one.rounds[place].said))
                others = [b for b in pool if b.rounds[0].said[:200] != one.rounds[0].said[:200]]
                same = [b for b in others if b.project == one.project]
                for kind, choice, most in (("same", same, SAME_PROJECT), ("any", others, ANY)):
                    for other in dice.sample(choice, min(most, len(choice))):
                        said = other.rounds[0].said
                        halves[half].append(Case(group, kind, one.rounds[-ROUNDS:], said))
    return halves


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--show", action="store_true", help="print the false alarms")
    given = parser.parse_args()
    found = [one for folder in given.folders for one in talks(folder)]
    out = sys.stdout.write
    out("| who | half | goes on | false alarms | new, same project | found | new, any | found ")
    out("| precision |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
    for half, every in enumerate(cases(found)):
        for group in sorted({one.group for one in every}):
            mine = [one for one in every if one.group == group]
            hits = [one for one in mine if is_new(one.rounds, one.said)]
            kinds = ("", "same", "any")
            n = {kind: sum(one.new == kind for one in mine) for kind in kinds}
            hit = {kind: sum(one.new == kind for one in hits) for kind in kinds}
            share = {kind: hit[kind] / max(n[kind], 1) for kind in kinds}
            right = hit["same"] + hit["any"]
            out(
                f"| {group} | {('tuned on', 'tested on')[half]} | {n['']} "
                f"| {hit['']} ({share['']:.1%}) | {n['same']} | {share['same']:.1%} "
                f"| {n['any']} | {share['any']:.1%} | {right / max(right + hit[''], 1):.1%} |\n"
            )
            for one in hits if given.show else ():
                if not one.new:
                    out(f"    {one.rounds[-1].said[:150]!r} -> {one.said[:400]!r}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
