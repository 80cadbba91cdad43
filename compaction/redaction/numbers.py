"""Checks for card, social security, phone and IP numbers, and for email addresses.

As in `checks`, each takes the whole text and the place of the match.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address

from compaction.redaction.checks import DIGITS, WORD, after_escape

_NO_DOMAIN = frozenset(
    b"png jpg jpeg gif svg webp ico css js ts jsx tsx py rb go rs json html service socket mount "
    b"target timer".split()
)
_CARD_LENGTHS = (
    (re.compile(rb"3[47]"), (15,)),
    (re.compile(rb"4"), (13, 16, 19)),
    (re.compile(rb"5[1-5]|2[2-7]"), (16,)),
    (re.compile(rb"6(?:011|5|4[4-9]|2)"), (16, 17, 18, 19)),
    (re.compile(rb"35"), (16,)),
    (re.compile(rb"3(?:0[0-5]|[68])"), (14,)),
)


def ssn(data: bytes, start: int, end: int) -> bool:
    """Accept a valid social security number that is not part of a longer number."""
    area, group, serial = data[start:end].split(b"-")
    if _next_to(data, start, end, WORD | frozenset(b"-.+")):
        return False
    return area not in (b"000", b"666") and area < b"900" and group != b"00" and serial != b"0000"


def _next_to(data: bytes, start: int, end: int, signs: frozenset[int]) -> bool:
    if start and data[start - 1] in signs and not after_escape(data, start):
        return True
    if end < len(data) and data[end] in signs:
        # A period may end a sentence.
        return data[end] != ord(".") or (end + 1 < len(data) and data[end + 1] in WORD)
    return False


def card(data: bytes, start: int, end: int) -> bool:
    """Accept a card number: an issuer's prefix and length, a valid Luhn check, even groups."""
    value = data[start:end]
    digits = value.translate(None, b" -")
    if _next_to(data, start, end, WORD | frozenset(b"-.")) or len(set(digits)) < 2:
        return False
    if len(value) != len(digits) and not re.fullmatch(
        rb"\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5}", value
    ):
        return False
    if not any(p.match(digits) and len(digits) in sizes for p, sizes in _CARD_LENGTHS):
        return False
    return luhn(digits)


def luhn(digits: bytes) -> bool:
    """Return whether the last digit is the check digit of the others."""
    total = 0
    for place, byte in enumerate(reversed(digits)):
        number = byte - 48
        if place % 2:
            number = number * 2 - 9 if number > 4 else number * 2
        total += number
    return total % 10 == 0


def north_american(data: bytes, start: int, end: int) -> bool:
    """Accept ten digits in three parts, with equal separators unless the first is in brackets."""
    value = data[start:end]
    if _next_to(data, start, end, WORD | frozenset(b"-./")):
        return False
    if value.startswith(b"("):
        return value[4:5] == b")"
    return value[3] == value[7] and value[3:4] != b")" and value[3:4] != b" "


def international(data: bytes, start: int, end: int) -> bool:
    """Accept an E.164 number with separators, or with at least ten digits."""
    value = data[start:end]
    size = sum(byte in DIGITS for byte in value)
    if not 8 <= size <= 15 or _next_to(data, start, end, WORD | frozenset(b"-.)]+*/")):
        return False
    parts = re.split(rb"[ .()-]+", value[1:])
    if len(parts) == 1:
        # A line added in a diff also begins with a plus.
        return size >= 10 and start > 0 and data[start - 1 : start] not in (b"\n", b"\r")
    return len([part for part in parts if part]) >= 3 and b"." not in value or size >= 10


def email(data: bytes, start: int, end: int) -> bool:
    """Accept the address of a person or a role, but not git's user or a file like logo@2x.png."""
    local, _, domain = data[start:end].rpartition(b"@")
    if end - start > 254 or local.rpartition(b"/")[2] == b"git":
        return False
    if re.search(rb"://[^\s/]*$", data[max(0, start - 300) : start]):
        # User and password of a URL; its host is not a secret.
        return False
    last = domain.rpartition(b".")[2].lower()
    return last not in _NO_DOMAIN and data[end : end + 1] != b"("


def ipv4(data: bytes, start: int, end: int) -> bool:
    """Accept the address of a machine: not a version, a mask or loopback."""
    parts = data[start:end].split(b".")
    if any(len(part) > 1 and part.startswith(b"0") or int(part) > 255 for part in parts):
        return False
    if _next_to(data, start, end, WORD | frozenset(b".-+")) or parts[1:] == [b"0"] * 3:
        return False
    if parts[0] in (b"0", b"127", b"255") or all(len(part) == 1 for part in parts):
        return False
    before = data[max(0, start - 16) : start].lower()
    return not re.search(rb"(?:version|release|[a-z]/|[=~^<>]=|\bv|\boid)[\s\"':=]{0,4}$", before)


def ipv6(data: bytes, start: int, end: int) -> bool:
    """Accept a global or local address of a machine: not a time, a hardware address or loopback."""
    value = data[start:end]
    if len(value) < 9 or _next_to(data, start, end, WORD | frozenset(b":.")):
        return False
    if max(map(len, value.split(b":"))) < 3 or (value.count(b":") < 7 and b"::" not in value):
        return False
    try:
        address = IPv6Address(value.decode())
    except AddressValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)
