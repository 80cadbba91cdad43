"""Figures for people: tokens, money, shares, times; keep in sync with the browser's format.ts."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from django.utils import timezone

UNKNOWN = "unknown"
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400

MANY_TIMES = 10
"""From this multiple on a change is a factor: ×20 instead of +1900 %."""


def tokens(count: int | None) -> str:
    """Tokens as 940, 152.3k, 1.24M or 1.3G; "unknown" for None."""
    if count is None:
        return UNKNOWN
    if abs(count) < 1000:
        return str(count)
    if abs(count) < 999_950:
        return f"{count / 1000:.1f}k"
    if abs(count) >= 999_950_000:
        return f"{count / 1_000_000_000:.1f}G"
    return f"{count / 1_000_000:.{2 if abs(count) < 9_995_000 else 1}f}M"


def signed(count: int) -> str:
    """A change in tokens with its sign: +1.7k, −108.6k, 0."""
    sign = "+" if count > 0 else "−" if count < 0 else ""
    return f"{sign}{tokens(abs(count))}"


def window(count: int | None) -> str:
    """The size of a window: 200k, 1M."""
    if count and count % 100_000 == 0 and count >= 1_000_000:
        return f"{count / 1_000_000:g}M"
    return f"{count // 1000}k" if count and count % 1000 == 0 else tokens(count)


def money(microusd: int | None) -> str:
    """Micro-dollars as $0.058 (two significant digits below a dollar) or $31.40; "unknown" for
    None."""
    if microusd is None:
        return UNKNOWN
    if microusd < 0:
        return f"−{money(-microusd)}"
    dollars = microusd / 1_000_000
    if dollars == 0:
        return "$0"
    if dollars >= 1:
        return f"${dollars:,.2f}"
    rounded = float(f"{dollars:.1e}")
    return f"${rounded:.{min(6, max(2, 1 - math.floor(math.log10(rounded))))}f}"


def at_least(microusd: int | None, *, bound: bool) -> str:
    """Micro-dollars, as ≥ $0.058 if they are only a lower bound; "unknown" for None."""
    return f"≥ {money(microusd)}" if bound and microusd is not None else money(microusd)


def roughly(microusd: int | None) -> str:
    """Estimated micro-dollars as ≈$0.058; "unknown" for None."""
    return UNKNOWN if microusd is None else f"≈{money(microusd)}"


def percent(share: float | None, digits: int = 0) -> str:
    """A share as 76 %, with `digits` decimals; "unknown" for None.

    100 % and 0 % are exact: 0.996 becomes "> 99 %".
    """
    if share is None:
        return UNKNOWN
    text, least = f"{share * 100:.{digits}f}", 10**-digits
    if float(text) == 0:
        return f"< {least:g} %" if share else "0 %"
    if float(text) == 100 and share != 1:
        return f"> {100 - least:g} %" if share < 1 else "> 100 %"
    return "100 %" if share == 1 else f"{text} %"


def finely(share: float | None) -> str:
    """A share with one decimal: 97.5 %; a dash for None."""
    return "–" if share is None else percent(share, 1)


def change(share: float | None) -> str:
    """A relative change with its sign: +21 %, −4.9 %, 0 %, with a decimal below 10 %; from tenfold
    on the factor, ×402; a dash for None."""
    if share is None:
        return "–"
    if share + 1 >= MANY_TIMES:
        return f"×{share + 1:,.0f}"
    size = abs(share) * 100
    text = f"{size:.1f}" if size < 9.95 else f"{size:.0f}"
    if float(text) == 0:
        return "0 %"
    return f"{'+' if share > 0 else '−'}{text} %"


def duration(seconds: float | None) -> str:
    """Seconds as 400 ms, 12 s, 7 m 12 s, 3 h 5 m or 4 d 2 h; "unknown" for None."""
    if seconds is None:
        return UNKNOWN
    if seconds < 1:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    whole = round(seconds)
    for unit, below, name, smaller in ((_DAY, _HOUR, "d", "h"), (_HOUR, _MINUTE, "h", "m")):
        if whole >= unit:
            rest = whole % unit // below
            return f"{whole // unit} {name}" + (f" {rest} {smaller}" if rest else "")
    if whole >= _MINUTE:
        return f"{whole // _MINUTE} m" + (f" {whole % _MINUTE} s" if whole % _MINUTE else "")
    return f"{whole} s"


def moment(ms: int | None) -> datetime | None:
    """A point in time from ms since the epoch, in UTC; None for what no calendar holds."""
    if ms is None:
        return None
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def day(at: datetime) -> str:
    """A day as Nov 21; with its year, as Nov 21, 2025, if that is not the current one."""
    year = "" if at.year == timezone.now().year else f", {at.year}"
    return f"{at:%b} {at.day}{year}"


def age(at: datetime | None) -> str:
    """How long ago, in one unit: 12 s, 2 m, 5 h, 3 d; the month from 90 days on."""
    if at is None:
        return "–"
    seconds = (timezone.now() - at).total_seconds()
    if seconds >= 90 * _DAY:
        return f"{at:%b %Y}"
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if seconds >= unit:
            return f"{int(seconds // unit)} {name}"
    return f"{int(max(seconds, 0))} s"


def ago(at: datetime | None) -> str:
    """How long ago, as a phrase: just now, 2 m ago, 3 d ago, Aug 2026; "unknown" for None."""
    answer = age(at)
    if at is None:
        return UNKNOWN
    if answer == "0 s":
        return "just now"
    return answer if answer[:1].isalpha() else f"{answer} ago"


def size(count: int | None) -> str:
    """Bytes as 640 B, 12.5 kB or 3.1 MB; "unknown" for None."""
    if count is None:
        return UNKNOWN
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} kB" if count < 999_950 else f"{count / 1_000_000:.1f} MB"


def us_as_ms(us: int) -> str:
    """Microseconds in milliseconds, with one decimal below ten: 0.4, 12."""
    return f"{us / 1000:.1f}" if us < 10_000 else f"{round(us / 1000):,}"


def whole(count: int) -> str:
    """A count with thousands separators: 12,345."""
    return f"{count:,}"


def figure(value: float | None, unit: str) -> str:
    """A value in its unit, one of `models.web.sums.Unit`; a dash for None."""
    if value is None:
        return "–"
    if unit == "mean":
        return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    if unit == "share":
        return percent(value)
    return {"microusd": money, "tokens": tokens, "count": whole}[unit](round(value))
