"""Opening a session of 10,000 messages: bytes and server CPU of everything a usable page needs.

    python -m benchmarks manifest

The session is synthetic, with a compaction every 400 steps; requests are made in one process.
"""

from __future__ import annotations

import gzip
import os
import statistics
import tempfile
import time

from benchmarks.figures import figure

MESSAGES = (1_000, 10_000)
ROUNDS = 15


def main() -> None:
    """Fill a store, then load page, manifest and first rows as a browser does."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CONTEXTLAB_DATA_DIR"] = folder
        os.environ.pop("DATABASE_URL", None)
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        print(f"{'messages':>9} {'address':<34} {'CPU ms':>8} {'bytes gzipped':>14}")
        for messages in MESSAGES:
            _measure(messages)


def _measure(messages: int) -> None:
    from django.test import Client
    from django.urls import reverse

    from sessions.actions.accounts.teams import local_team, local_user
    from sessions.actions.record.append import append
    from sessions.actions.record.measure import measure

    made = append(local_team(), _session(messages), _count, source="benchmark").session
    measure(made)
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(local_user())
    addresses = {
        "page": reverse("replay", args=[made.pk]),
        "manifest": reverse("api:manifest", args=[made.pk]) + "?packed=true",
        "rows in view": reverse("api:previews", args=[made.pk]) + f"?at={_last(messages, 200)}",
    }
    total_cpu, total_bytes = 0.0, 0
    for name, address in addresses.items():
        cpu, size = _ask(client, address)
        total_cpu, total_bytes = total_cpu + cpu, total_bytes + size
        print(f"{messages:>9,} {name:<34} {cpu:>8.1f} {size:>14,}")
    what = f"opening a replay of {messages:,} synthetic messages"
    figure(f"{what}: server CPU, ms", total_cpu, at_most=25)
    figure(f"{what}: KB, gzip", total_bytes / 1000, at_most=120)


def _last(messages: int, many: int) -> str:
    return ",".join(map(str, range(messages - many, messages)))


def _ask(client: object, address: str) -> tuple[float, int]:
    taken = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        response = client.get(address, headers={"accept-encoding": "gzip"})  # type: ignore[attr-defined]
        taken.append((time.process_time() - begun) * 1000)
        assert response.status_code == 200, response.status_code
    packed = response.headers.get("Content-Encoding") == "gzip"
    body = response.content if packed else gzip.compress(response.content)
    return statistics.median(taken), len(body)


def _count(text: str) -> object:
    from compaction.tokens import Counted

    return Counted(len(text) // 4 + 1)


def _session(messages: int) -> object:
    """Steps of one tool call and its result, sizes spread like those of real logs."""
    from compaction.context.session import Usage
    from sessions.importers import records

    made: list[records.Record] = []
    prompt, state = 20_000, 1
    for step in range(1, messages // 2 + 1):
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        size = 40 + state % 4000
        wire = {
            "type": "tool_use",
            "id": f"t{step}",
            "name": "Read",
            "input": {"file_path": f"src/f{state % 97}.py"},
        }
        made.append(
            records.Message(
                "assistant",
                [wire],
                key=f"a{step}",
                call=f"c{step}",
                at=1_700_000_000_000 + step * 9000,
            )
        )
        usage = Usage(uncached=3, cache_read=prompt, cache_write_5m=size // 4 + 60, output=60)
        prompt += size // 4 + 60
        made.append(
            records.Call(f"c{step}", "claude-sonnet-4-5", 1_700_000_000_000 + step * 9000, usage)
        )
        made.append(
            records.Message(
                "user",
                [
                    {
                        "type": "tool_result",
                        "tool_use_id": f"t{step}",
                        "content": f"{step} " + "line of code\n" * (size // 13),
                    }
                ],
                key=f"r{step}",
            )
        )
        if step % 400 == 0:
            made.append(records.Compaction("auto", key=f"x{step}"))
            prompt = 20_000
    return records.Session(
        f"benchmark-{messages}", agent="benchmark", model="claude-sonnet-4-5", records=made
    )


if __name__ == "__main__":
    main()
