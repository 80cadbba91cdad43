"""Search in the texts of 100,000 sessions, on SQLite and on PostgreSQL if one answers.

    CONTEXTLAB_CORPUS=/path/to/logs python -m benchmarks search

Blocks of the logs in that folder, without one the files of this repository, repeated in ten blocks
a session; each session also has a word of its own. Time of the search page, median and 95th
percentile over the queries below, each of them ROUNDS times, and of the index alone.
"""

from __future__ import annotations

import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks.figures import figure
from benchmarks.processes import say

SESSIONS = int(os.environ.get("CONTEXTLAB_BENCH_SESSIONS", 100_000))
BLOCKS, TEXTS, ROUNDS, AT_ONCE = 10, 4_000, 9, 2_000
ROOT = Path(__file__).resolve().parent.parent.parent
CHILD = "CONTEXTLAB_BENCH_SEARCH"


def queries(common: list[str]) -> dict[str, str]:
    """Query strings by what they look for; `common` are frequent words, the most frequent first."""
    first, second, third = common[0], common[1], common[20]
    return {
        "a word of one session": "q=own4711",
        "no such word": "q=xyzzyplugh",
        "the most frequent word": f"q={first}",
        "two frequent words": f"q={first}+{second}",
        "a frequent and a rare word": f"q={first}+own4711",
        "frequent words as they never stand": f'q="{third}+{first}+{third}"',
        "a frequent word, one of ten agents": f"q={third}&agent=agent-3",
        "a frequent word, one of 1,000 models": f"q={third}&model=model-7",
        "a frequent word, errors": f"q={third}&error=1",
        "a frequent word, a tool": f"q={third}&tool=Rare",
        "a frequent word, cost": f"q={third}&cost=9",
        "second page": f"q={third}&after=500000",
    }


def texts() -> list[str]:
    """Distinct texts of real blocks."""
    folder = os.environ.get("CONTEXTLAB_CORPUS")
    found = list(dict.fromkeys(_of_logs(Path(folder)) if folder else _of_files()))
    random.Random(1).shuffle(found)
    return found[:TEXTS]


def _of_logs(folder: Path) -> Iterator[str]:
    from sessions.importers import NotALog, parse
    from sessions.importers.records import Message
    from sessions.models.search.search_words import searched_text

    for path in sorted(folder.expanduser().rglob("*.jsonl"))[:60]:
        try:
            log = parse(path.read_bytes(), path.name)
        except NotALog:
            continue
        for session in log.sessions:
            for record in session.records:
                if isinstance(record, Message):
                    yield from filter(None, map(searched_text, record.blocks))


def _of_files() -> Iterator[str]:
    for path in sorted([*ROOT.glob("compaction/**/*.py"), *ROOT.glob("docs/**/*.md")]):
        yield from filter(str.strip, re.split(r"\n\n+", path.read_text()))


def fill(stored: list[str]) -> int:
    """Store the sessions and index them; return the bytes of their distinct texts as stored."""
    from django.db import transaction

    from sessions.actions.accounts.teams import local_team
    from sessions.models import Blob, Session
    from sessions.models.search.search_words import words_of

    team = local_team()
    blobs = [Blob.of(team.pk, _wire(text)) for text in stored]
    Blob.objects.bulk_create(blobs, ignore_conflicts=True)
    words = [words_of(text) for text in stored]
    chosen = random.Random(2)
    for begin in range(0, SESSIONS, AT_ONCE):
        rows = [
            Session(
                id=UUID(int=number + 1), team=team, external_id=f"s{number}", title=f"S {number}",
                agent=f"agent-{number % 10}", model=f"model-{number % 1000}", block_count=BLOCKS,
                message_count=BLOCKS, step_count=BLOCKS, indexed_blocks=BLOCKS,
                cost_microusd=number * 7919 % 10_000_000, ended_at=1_790_000_000_000 + number,
            )
            for number in range(begin, min(begin + AT_ONCE, SESSIONS))
        ]  # fmt: skip
        with transaction.atomic():
            Session.objects.bulk_create(rows)
            _write_blocks(team.pk, rows, blobs, words, chosen)
    return sum(len(bytes(blob.data)) for blob in blobs)


def _wire(text: str) -> bytes:
    import json

    return json.dumps({"type": "text", "text": text}).encode("utf-8", "replace")


def _write_blocks(
    team: UUID, rows: list[Any], blobs: list[Any], words: list[set[str]], chosen: random.Random
) -> None:
    from sessions.actions.record.writing import BLOCK_COLUMNS, MESSAGE_COLUMNS
    from sessions.models import Block, Message
    from sessions.models.search import text_index
    from sessions.models.search.search_words import label
    from sessions.models.web.statements import insert, stored_uuid

    messages, blocks, index = [], [], []
    for row in rows:
        number, session = row.pk.int - 1, stored_uuid(row.pk)
        labels = {label("team", team), label("session", row.pk), label("kind", "result")}
        for position in range(BLOCKS):
            pk, which = number * BLOCKS + position + 1, chosen.randrange(len(blobs))
            error, tool = pk % 50 == 0, "Rare" if pk % 200 == 0 else "Bash"
            messages.append((pk, session, position + 1, None, "", "user", "", position + 1, 1,
                             False, False, None, 0, None))  # fmt: skip
            blocks.append((pk, session, pk, 0, position, position + 1, "tool_result", "result",
                           tool, "", "", "", None, None, error, 9, False, 9, 9, blobs[which].sha,
                           ""))  # fmt: skip
            more = {label("tool", tool.lower())} | ({label("error", 1)} if error else set())
            own = {f"own{number}"} if position == 0 else set()
            index.append((pk, words[which] | labels | more | own))
    insert(Message, ("id", *MESSAGE_COLUMNS), messages)
    insert(Block, ("id", *BLOCK_COLUMNS), blocks)
    text_index.add(index)


def measure(client: Any, common: list[str]) -> None:
    """Say how long each query takes, and the figures over all."""
    every: list[float] = []
    say(f"{'':40}{'p50 ms':>8}{'p95 ms':>8}")
    for name, query in queries(common).items():
        assert client.get(f"/search/?{query}").status_code == 200, query
        took = []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            client.get(f"/search/?{query}")
            took.append(1000 * (time.perf_counter() - begun))
        every += took
        say(f"{name:40}{statistics.median(took):8.0f}{_p95(took):8.0f}")
    database = os.environ[CHILD]
    figure(
        f"search, {SESSIONS:,} sessions, {database}: p50, ms", statistics.median(every), at_most=200
    )
    figure(f"search, {SESSIONS:,} sessions, {database}: p95, ms", _p95(every), at_most=200)


def _p95(took: list[float]) -> float:
    return sorted(took)[int(0.95 * (len(took) - 1) + 0.5)]


def child() -> None:
    """Fill the database of this process, and measure."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "contextlab.settings"
    import django

    django.setup()
    from collections import Counter

    from django.core.management import call_command
    from django.db import connection
    from django.test import Client

    from sessions.actions.accounts.teams import local_team, local_user
    from sessions.actions.dashboard.day_totals import keep_totals
    from sessions.models.search.search_words import words_of
    from sessions.models.search.text_index import TABLE

    call_command("migrate", verbosity=0)
    begun, stored = time.perf_counter(), texts()
    size = fill(stored)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("VACUUM ANALYZE")
            cursor.execute(f"SELECT pg_total_relation_size('{TABLE}')")
        else:
            cursor.execute("ANALYZE")
            cursor.execute(f"SELECT SUM(LENGTH(block)) FROM {TABLE}_data")
        index = cursor.fetchone()[0]
    say(
        f"{SESSIONS * BLOCKS:,} blocks of {len(stored):,} texts, "
        f"in {time.perf_counter() - begun:.0f} s"
    )
    say(f"index {index / 1e6:,.0f} MB; texts, if each block's were its own: "
        f"{size / len(stored) * SESSIONS * BLOCKS / 1e6:,.0f} MB")  # fmt: skip
    counted = Counter(word for text in stored for word in words_of(text))
    keep_totals(local_team())
    with connection.cursor() as cursor:
        # It changed every session, which PostgreSQL's own process would have cleared up by now.
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")
    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(local_user())
    measure(client, [word for word, _ in counted.most_common(30)])


def main() -> None:
    """Measure on each database in a process of its own."""
    from benchmarks.dashboard.lists import POSTGRES, database
    from tests.on_postgres import why_not

    run = [sys.executable, "-m", "benchmarks.search.search"]
    with tempfile.TemporaryDirectory() as folder:
        address = f"sqlite:///{folder}/search.sqlite3"
        given = {**os.environ, "DATABASE_URL": address, CHILD: "SQLite"}
        subprocess.run(run, cwd=ROOT, env=given, check=True)
    os.environ.setdefault("CONTEXTLAB_TEST_POSTGRES", POSTGRES)
    if missing := why_not():
        say(f"PostgreSQL: left out, {missing}")
        return
    with database() as address:
        given = {**os.environ, "DATABASE_URL": address, CHILD: "PostgreSQL"}
        subprocess.run(run, cwd=ROOT, env=given, check=True)


if __name__ == "__main__":
    if os.environ.get(CHILD):
        child()
    else:
        main()
