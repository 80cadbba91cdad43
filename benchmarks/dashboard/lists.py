"""Lists and dashboards of a team with 200,000 sessions, on PostgreSQL.

    CONTEXTLAB_BENCH_POSTGRES=postgres://… python -m benchmarks lists

Makes a database of its own beside the named one, fills it with SQL, asks for each page, drops it.
CPU of Python's process and of PostgreSQL's without parallel workers, per request. The sessions lie
evenly in half a year; a tenth is compacted: 2,000 of these were reviewed, the others wait for it.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from benchmarks.figures import figure
from benchmarks.processes import cpu_seconds, say

if TYPE_CHECKING:
    from sessions.models import PolicyVersion, Session

POSTGRES = os.environ.get("CONTEXTLAB_BENCH_POSTGRES", "postgres://root@127.0.0.1:5432/test")
SESSIONS = int(os.environ.get("CONTEXTLAB_BENCH_SESSIONS", 200_000))
REVIEWED, ROUNDS, DAYS = min(2_000, SESSIONS // 10), 9, 180
NAME = f"contextlab_bench_{os.getpid()}"
AT = f"({int(time.time() * 1000)} - (i::bigint * {DAYS} * 86400000 / {SESSIONS}))"
"""When session `i` came, in SQL: ms."""

STEPS = "1 + (i::bigint * 7919 % 400)::int"
"""Steps of session `i`, all assessed and indexed: no job has anything to do."""

PAGES = {
    "sessions": "/sessions/",
    "sessions, second page": "/sessions/?cursor={cursor}",
    "sessions, sort=peak": "/sessions/?sort=peak",
    "sessions, sort=cost": "/sessions/?sort=cost",
    "sessions, sort=steps": "/sessions/?sort=steps",
    "sessions, agent=": "/sessions/?agent=agent-3",
    "sessions, model=": "/sessions/?model=gpt-5",
    "sessions, source=": "/sessions/?source=codex",
    "sessions, policy=": "/sessions/?policy=balanced",
    "sessions, flag=breaks": "/sessions/?flag=breaks",
    "sessions, flag=near-limit": "/sessions/?flag=near-limit",
    "sessions, flag=compacted": "/sessions/?flag=compacted",
    "sessions, flag=errors, sort=cost": "/sessions/?flag=errors&sort=cost",
    "sessions, a week": "/sessions/?since={week}",
    "sessions, counted=recall": "/sessions/?counted=recall",
    "dashboard, 24 hours": "/dashboard/?range=24h",
    "dashboard, 7 days": "/dashboard/?range=7d",
    "dashboard, 30 days": "/dashboard/?range=30d",
    "dashboard, all": "/dashboard/?range=all",
    "dashboard, 24 hours, agent=": "/dashboard/?range=24h&agent=agent-3",
    "dashboard, 30 days, agent=": "/dashboard/?range=30d&agent=agent-3",
    "cache, 7 days": "/cache/?range=7d",
    "cache, all": "/cache/?range=all",
    "cache, 30 days, agent=": "/cache/?range=30d&agent=agent-3",
    "live": "/live/",
    "tools": "/tools/",
    "review queue": "/review/",
}


@contextmanager
def database() -> Iterator[str]:
    """An empty database beside the named one; its address."""
    import psycopg
    from django.conf import settings
    from django.db import connections

    with psycopg.connect(POSTGRES, autocommit=True) as beside:
        beside.execute(f"CREATE DATABASE {NAME}")
    try:
        yield urlsplit(POSTGRES)._replace(path=f"/{NAME}").geturl()
    finally:
        if settings.configured:
            connections.close_all()
        with psycopg.connect(POSTGRES, autocommit=True) as beside:
            beside.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


def many(row: Any, times: int, **columns: str) -> None:
    """Copy a row `times` times; `columns` say in SQL what differs, with `i` from 1 on."""
    from django.db import connection

    table, named = row._meta.db_table, [field.column for field in row._meta.concrete_fields]
    listed = ", ".join(columns.get(name, f't."{name}"') for name in named)
    names = ", ".join(f'"{name}"' for name in named)
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{table}" ({names}) SELECT {listed} '
            f'FROM "{table}" t, generate_series(1, {times}) i '
            f"WHERE t.\"{row._meta.pk.column}\" = '{row.pk}'"
        )


def uuid(kind: int) -> str:
    """An id in SQL, one for each `i`."""
    return f"('00000000-0000-400{kind}-8000-' || lpad(to_hex(i), 12, '0'))::uuid"


def fill() -> None:
    """Store the sessions with what lists and dashboards read of them."""
    from compaction.context.blocks import KINDS
    from sessions.actions.accounts.teams import local_team
    from sessions.actions.policies.policies import active_version
    from sessions.models import Session

    team = local_team()
    version = active_version(team)
    one = Session.objects.create(
        team=team, external_id="one", title="A session", window=200_000,
        usage_calls=9, token_basis="exact", meta={"cwd": "/work", "branch": "main"},
        sparkline=[[10 for _ in range(len(KINDS))] for _ in range(60)],
    )  # fmt: skip
    _fill_reviews(one, version)
    _fill_sessions(one, version)
    one.delete()


def _fill_reviews(one: Session, version: PolicyVersion) -> None:
    """Store a managed run for every tenth session: a compaction, its ledger and its reviews."""
    from compaction.losses import ledger as ledgers
    from sessions.actions.accounts.teams import local_user
    from sessions.models import Board, Revision, Run
    from sessions.models.record.revisions import Edit
    from sessions.models.reviews.assessments import FactLedger
    from sessions.models.reviews.reviews import Review, ReviewItem

    managed = Run.objects.create(
        session=one, origin="managed", policy_version=version, head=1, indexed_head=1
    )
    board = Board.objects.create(team=one.team, kind="session", name=str(one.pk), session=one)
    revision = Revision.objects.create(
        run=managed, number=1, step=5, trigger="tokens", policy_version=version
    )
    edit = Edit.objects.create(revision=revision, index=0, strategy="compact")
    ledger = FactLedger.objects.create(
        revision=revision, kept=8, lost=2, score=800, engine=ledgers.ENGINE
    )
    item = ReviewItem.objects.create(team=one.team, revision=revision, reason="share")
    scores = {"goal": 5, "constraints": 4, "state": 4, "next": 3, "invention": 1}
    review = Review.objects.create(
        item=item, reviewer=local_user(), verdict="pass", scores=scores, started=one.created
    )
    often = SESSIONS // 10
    many(review, REVIEWED, id="i + 1", item_id=uuid(3), submitted="now() - i * interval '1 hour'")
    many(item, often, id=uuid(3), revision_id="i + 1", rank="i::bigint * 7919 % 5000000 * 1000000",
         created=f"to_timestamp({AT.replace('(i', '(i * 10')} / 1000)",
         finished=f"CASE WHEN i <= {REVIEWED} THEN now() - i * interval '1 hour' END"
         )  # fmt: skip
    many(ledger, often, id="i + 1", revision_id="i + 1")
    many(edit, often, id="i + 1", revision_id="i + 1")
    many(revision, often, id="i + 1", run_id=uuid(2))
    tenth = uuid(1).replace("(i)", "(i * 10)")
    many(managed, often, id=uuid(2), session_id=tenth)
    many(
        board,
        often,
        id="i + 1",
        session_id=tenth,
        name=f"{tenth}::text",
        changed=f"to_timestamp({AT.replace('(i', '(i * 10')} / 1000)",
    )


def _fill_sessions(one: Session, version: PolicyVersion) -> None:
    """Store copies of a session with its recorded run and assessment."""
    from sessions.actions.assessments import assessments
    from sessions.actions.record import measured
    from sessions.models import Assessment, Run
    from sessions.models.record.manifest import pack

    at = AT
    assessment = Assessment.objects.create(session=one, tools=TOOLS, engine=assessments.ENGINE)
    run = Run.objects.create(
        session=one, origin="recorded", columns=pack(_figures()), engine=measured.ENGINE
    )
    many(run, SESSIONS, id=uuid(4), session_id=uuid(1),
         columns="CASE WHEN i % 3 = 0 THEN t.columns ELSE ''::bytea END")  # fmt: skip
    money = {f"{name}_microusd": f"(i::bigint * {k} % 90001)" for k, name in enumerate(MONEY, 7)}
    many(assessment, SESSIONS, session_id=uuid(1), steps=STEPS, failures="i % 4", recovered="i % 2",
         judged_steps="i % 50", adrift_steps="i % 9", checked_calls="i % 30",
         schema_violations="0", needs="CASE WHEN i % 10 = 0 THEN i % 40 END",
         in_context="CASE WHEN i % 10 = 0 THEN i % 40 END", named="0", retrievable="0", lost="0",
         changed="now() - i * interval '1 minute'", **money)  # fmt: skip
    many(one, SESSIONS, id=uuid(1), external_id="'s' || i", title="'Session ' || i",
         agent="'agent-' || i % 8", model="(ARRAY['gpt-5', 'claude-sonnet-4-5', 'o3'])[1 + i % 3]",
         source="(ARRAY['claude-code', 'codex', 'api', 'pi'])[1 + i % 4]",
         parent_external_id="''", outcome="(ARRAY['', 'succeeded', 'failed'])[1 + i % 3]",
         policy_version_id=f"CASE WHEN i % 4 = 2 THEN {version.pk} END",
         step_count=STEPS, peak_tokens="(i::bigint * 7907 % 200000)",
         cost_microusd="CASE WHEN i % 9 > 0 THEN i::bigint * 7901 % 9000000 END",
         cache_read_tokens="i % 90000", cache_write_tokens="i % 9000", uncached_tokens="i % 7000",
         break_count="CASE WHEN i % 3 = 0 THEN 2 ELSE 0 END",
         error_count="CASE WHEN i % 5 = 0 THEN 1 ELSE 0 END",
         compaction_count="CASE WHEN i % 20 = 0 THEN 1 ELSE 0 END",
         started_at=f"{at} - 3600000", ended_at=f"CASE WHEN i % 50 > 0 THEN {at} END",
         created=f"to_timestamp({at} / 1000)", changed=f"to_timestamp({at} / 1000)",
         version="3")  # fmt: skip


MONEY = ("uncached", "write", "read", "output", "avoidable", "unexplained")
TOOLS = {
    "uses": dict.fromkeys(("Read", "Edit", "Bash", "Grep", "Glob", "Task", "Write"), 9),
    "follows": {name: [{"Edit": 3, "Bash": 4}, {"Read": 2}] for name in ("Read", "Edit", "Bash")},
}


def _figures() -> bytes:
    """Figures of 60 steps with two cache breaks."""
    import msgspec

    from sessions.models.record.tail import COLUMNS, Figures

    steps: dict[str, list[int | None]] = {name: list(range(60)) for name in COLUMNS}
    card = {"step": 9, "tokens": 9_000, "cost_microusd": 4_000, "title": "TTL expired",
            "advice": "Answer within the TTL."}  # fmt: skip
    cards = [{**card, "kind": kind} for kind in ("ttl", "edit")]
    return msgspec.json.encode(Figures(steps=steps, causes=cards, models=["gpt-5"]))


def measured(client: Any, address: str) -> tuple[float, float]:
    """CPU ms of Python and of PostgreSQL for a page: medians."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SET max_parallel_workers_per_gather = 0")
        cursor.execute("SELECT pg_backend_pid()")
        backend = cursor.fetchone()[0]
    assert client.get(address).status_code == 200, address
    own, theirs = [], cpu_seconds(backend)
    for _ in range(ROUNDS):
        begun = time.process_time()
        client.get(address)
        own.append(time.process_time() - begun)
    # The kernel counts in 10 ms: only the sum over the rounds is exact enough.
    return (
        1000 * statistics.median(own),
        1000 * (cpu_seconds(backend) - theirs) / ROUNDS,
    )


def set_up(address: str) -> None:
    """Set up Django for a database."""
    import django

    os.environ["DATABASE_URL"] = address
    os.environ["DJANGO_SETTINGS_MODULE"] = "contextlab.settings"
    django.setup()


def keep_many() -> None:
    """Migrate the database, fill it, and add up its sums."""
    from django.core.management import call_command
    from django.db import connection, transaction

    from sessions.actions.accounts.teams import local_team
    from sessions.actions.dashboard.day_totals import keep_totals

    call_command("migrate", verbosity=0)
    begun = time.perf_counter()
    with transaction.atomic():
        fill()
    begun_keeping = time.perf_counter()
    keep_totals(local_team())
    say(f"added up for the first time in {time.perf_counter() - begun_keeping:.0f} s")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("SELECT pg_database_size(current_database())")
        size = cursor.fetchone()[0]
    say(f"{SESSIONS:,} sessions, {size / 1e6:,.0f} MB, in {time.perf_counter() - begun:.0f} s")


def main() -> None:
    """Fill and measure."""
    with database() as address:
        set_up(address)
        from django.test import Client

        from sessions.actions.accounts.teams import local_user
        from sessions.models import Session
        from sessions.views.web.paging import Cursor

        keep_many()
        client = Client(headers={"host": "127.0.0.1"})
        client.force_login(local_user())
        middle = Session.objects.exclude(ended_at=None).order_by("ended_at")[SESSIONS // 2]
        places = {
            "cursor": Cursor(True, middle.ended_at or 0, middle.pk),
            "week": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(time.time() - 7 * 86400)),
        }
        say("CPU ms of a page: all (Python + PostgreSQL)")
        for name, path in PAGES.items():
            own, theirs = measured(client, path.format(**places))
            say(f"{name:28} {own + theirs:7.0f}  ({own:.0f} + {theirs:.0f})")
            figure(f"{name}, {SESSIONS:,} sessions: CPU, ms", own + theirs, at_most=100)


if __name__ == "__main__":
    main()
