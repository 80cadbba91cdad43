"""Long, deterministic outputs of the demo's commands: logs, tables and dumps."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

_START = datetime(2026, 11, 14, 5, 58, tzinfo=UTC)
_ROUTES = ("SH1", "SH2", "SL9", "LT4")
_TWICE = {
    "4F1A77C0": (129_000, "pay_77b1f50c2e93"),
    "B2C90E13": (142_000, "pay_e3124a9f60b7"),
    "0D8E5A41": (64_500, "pay_1c08e2d7a940"),
    "7719FE02": (17_800, "pay_a90d3c41f768"),
    "C5AA3D6B": (64_500, "pay_4d9fc7013ea5"),
    "E80B21F7": (17_800, "pay_b86a0e5592c1"),
    "92D4C1AE": (26_700, "pay_05e6bb82d1fc"),
}
"""Bookings charged twice: amount in øre, and the id of the second payment."""


def _random(seed: str) -> random.Random:
    return random.Random(seed)  # noqa: S311 (a script, not a secret)


def references(many: int = 110) -> list[str]:
    """References of a morning's bookings, including those charged twice."""
    chance = _random("references")
    made = [f"{chance.getrandbits(32):08X}" for _ in range(many - len(_TWICE))]
    for index, reference in enumerate(_TWICE):
        made.insert(9 + index * 14, reference)
    return made


def access_log() -> str:
    """A morning of the web server's access log."""
    return "\n".join(_access_lines())


def _access_lines() -> Iterator[str]:
    chance, at = _random("access"), _START
    agents = ("Mozilla/5.0 (iPhone)", "Mozilla/5.0 (X11; Linux)", "SkarvikApp/3.2", "curl/8.9")
    for reference in references():
        at += timedelta(seconds=chance.randint(4, 70))
        who = f"10.4.{chance.randint(0, 9)}.{chance.randint(2, 250)}"
        agent = chance.choice(agents)
        route = chance.choice(_ROUTES)
        yield _line(who, at, f"GET /sailings/{route}?day=2026-11-21", 200, 2140, 31, agent)
        at += timedelta(seconds=chance.randint(3, 40))
        yield _line(who, at, f"POST /bookings/{reference}/pay", 202, 88, 140, agent)
        slow = reference in _TWICE
        at += timedelta(seconds=2)
        hook = f"POST /hooks/payment?ref={reference}&event=evt_{reference.lower()}"
        status, ms = (504, 10_004) if slow else (200, chance.randint(180, 420))
        yield _line("198.51.100.7", at, hook, status, 0, ms, "Betal/1.4")
        if slow:
            at += timedelta(seconds=15)
            yield _line("198.51.100.7", at, hook, 200, 0, 210, "Betal/1.4")


def _line(who: str, at: datetime, request: str, status: int, size: int, ms: int, agent: str) -> str:
    when = f"[{at:%d/%b/%Y:%H:%M:%S} +0000]"
    return f'{who} - - {when} "{request} HTTP/1.1" {status} {size} {ms}ms "{agent}"'


def payments() -> str:
    """The payment service's list as JSON."""
    return json.dumps({"object": "list", "has_more": False, "data": _payments()}, indent=2)


def _payments() -> list[dict[str, str | int]]:
    chance, at = _random("payments"), _START
    rows: list[dict[str, str | int]] = []
    for reference in references():
        at += timedelta(seconds=chance.randint(20, 110))
        amount, second = _TWICE.get(reference, (chance.choice((17_800, 26_700, 64_500)), ""))
        for attempt, id_ in enumerate(("", second) if second else ("",)):
            rows.append(
                {
                    "id": id_ or f"pay_{chance.getrandbits(48):012x}",
                    "reference": reference,
                    "amount_ore": amount,
                    "currency": "NOK",
                    "status": "captured",
                    "captured_at": (at + timedelta(seconds=15 * attempt)).isoformat(),
                    "method": chance.choice(("card", "card", "vipps")),
                    "event": f"evt_{reference.lower()}",
                    "idempotency_key": f"{chance.getrandbits(64):016x}",
                }
            )
    return rows


def captures_of_one() -> str:
    """Both captures of one booking."""
    rows = [row for row in _payments() if row["reference"] == "B2C90E13"]
    return "\n".join(f"{r['captured_at']} {r['event']} {r['idempotency_key']}" for r in rows)


def ledger_csv() -> str:
    """The accounts of a week as CSV."""
    chance, day = _random("ledger"), _START.date() - timedelta(days=7)
    lines = ["posted,voucher,account,reference,route,passengers,vehicle_m,debit_ore,credit_ore,by"]
    for number in range(620):
        posted = day + timedelta(days=number // 90)
        amount = chance.choice((8_900, 17_800, 26_700, 64_500, 71_000, 129_000))
        route, people = chance.choice(_ROUTES), chance.randint(1, 5)
        metres = chance.choice(("0.0", "0.0", "4.5", "5.0", "7.5"))
        reference = f"{chance.getrandbits(32):08X}"
        party = f"{reference},{route},{people},{metres}"
        lines.append(f"{posted},{20260000 + number},1920,{party},{amount},0,hook")
    return "\n".join(lines)


def journal() -> str:
    """An hour of the service's own log."""
    chance, at, known = _random("journal"), _START, references()
    lines = []
    for number in range(420):
        at += timedelta(milliseconds=chance.randint(900, 9_000))
        worker = chance.randint(1, 4)
        reference = chance.choice(known)
        text = chance.choice(
            (
                f"hold reference={reference} seats={chance.randint(1, 5)} until=+900s",
                f"pay reference={reference} queued amount_ore={chance.choice((17800, 64500))}",
                f"notice reference={reference} language={chance.choice(('en', 'nb'))} sent",
                f"cache timetable hit={chance.randint(88, 99)}% size={chance.randint(40, 60)}",
                f"db checkpoint pages={chance.randint(12, 900)} ms={chance.randint(3, 60)}",
            )
        )
        if number % 61 == 44:
            again = list(_TWICE)[number // 61 % len(_TWICE)]
            text = (
                f"hook event=evt_{again.lower()} waited 10000ms for lock 'printout' held by "
                "job=harbour_printout"
            )
        lines.append(f"{at:%Y-%m-%dT%H:%M:%S}.{chance.randint(0, 999):03}Z worker-{worker} {text}")
    return "\n".join(lines)


OUTPUTS: dict[str, Callable[[], str]] = {
    "access_log": access_log,
    "payments": payments,
    "ledger": ledger_csv,
    "journal": journal,
    "captures": captures_of_one,
}
"""Outputs by the names used in scripts."""
