"""Whether a match is really a secret: what looks like code, a version or a placeholder is none.

Every check is given the whole text as bytes and the place of the match, and looks at a few bytes
around it only.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address
from math import log2

LONGEST = 512
"""Bytes of a match that are looked at (ours); longer ones are no passwords."""

LONGEST_SECRET = 8_192
"""Bytes of the longest tokens, those of temporary cloud credentials, with room (ours)."""

_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS = frozenset(b"0123456789")
_WORD = _LETTERS | _DIGITS | frozenset(b"_")

_BEFORE_RANDOM = _WORD | frozenset(b".+")

_MASK = re.compile(rb"\[[A-Z_]{3,12}_\d{1,9}\]?")
_NO_VALUE = re.compile(
    rb"[$<{%\[(&@|#]|\*{2,}|x{3,}$|X{3,}|\.{2,}|-{2,}|\\|"
    rb"(?i:(?:your|my|the|example|sample|dummy|fake|placeholder|redacted|masked|hidden|changeme"
    rb"|insert|enter|none|null|nil|true|false|undefined|string|str|bytes|int|number|any|object"
    rb"|boolean|optional|required|unset|empty|password|passwd|passphrase|pwd|secret|token"
    rb"|os\.|env\.|process\.|self\.|this\.|config\.|settings\.|args\.|options\.|request\.|data\."
    rb")(?:[^A-Za-z0-9].*|s|)$)"
)
_CODE = re.compile(rb"[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)*[;,.:]?$")
_PATH = re.compile(rb"(?:[.~]{0,2}/|[A-Za-z]:[\\/]|https?://|file:|data:)")
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


def always(data: bytes, start: int, end: int) -> bool:  # noqa: ARG001
    """The pattern says it all."""
    return True


def _value(data: bytes, start: int, end: int) -> bytes:
    return data[start : min(end, start + LONGEST)]


def entropy(value: bytes) -> float:
    """Bits a byte, by how often each byte occurs in this value."""
    counts = [value.count(byte) for byte in set(value)]
    return -sum(n / len(value) * log2(n / len(value)) for n in counts)


def _kinds(value: bytes) -> int:
    """How many of upper case, lower case, digits and signs a value mixes."""
    return sum(
        (
            any(65 <= byte <= 90 for byte in value),
            any(97 <= byte <= 122 for byte in value),
            any(byte in _DIGITS for byte in value),
            any(byte not in _WORD for byte in value),
        )
    )


def _says_nothing(value: bytes) -> bool:
    """Whether a value stands for one that is not here: a variable, a type, a mask, dots."""
    return bool(_NO_VALUE.match(value) or _MASK.match(value)) or len(set(value)) < 3


def mixed(data: bytes, start: int, end: int) -> bool:
    """Letters and digits, as keys have them and words do not."""
    value = _value(data, start, end)
    return any(b in _DIGITS for b in value) and entropy(value) >= 2.0


def password(data: bytes, start: int, end: int) -> bool:
    """What is given as a password in quotes: anything but a stand-in or a piece of a template."""
    value = _value(data, start, end)
    if end - start > LONGEST or value.startswith((b"=", b"/", b"+")) or _says_nothing(value):
        return False
    if b"pass" in value.lower() and re.fullmatch(rb"[A-Za-z_.:-]+", value):
        # The name of a field, a message or a setting.
        return False
    return not (_PATH.match(value) and value.count(b"/") > 1)


def bare_password(data: bytes, start: int, end: int) -> bool:
    """What follows `password=` without quotes: more than a name in a program."""
    value = _value(data, start, end).rstrip(b".")
    if not password(data, start, end) or value.isdigit() and len(value) < 6:
        return False
    if _in_environment(data, start):
        return True
    if data[end : end + 1] in (b"(", b"[", b"{") or _CODE.match(value) and not _odd(value):
        return False
    return _kinds(value) > 1 and any(b in _DIGITS or b not in _WORD for b in value)


def telling_password(data: bytes, start: int, end: int) -> bool:
    """What follows `--password` or `password is`: more than a word."""
    return password(data, start, end) and mixed(data, start, end)


def quoted_in_query(data: bytes, start: int, end: int) -> bool:
    """What stands behind `identified by` in quotes: more than a word."""
    return password(data, start, end) and _kinds(_value(data, start, end)) > 1


def _odd(value: bytes) -> bool:
    """Whether a name has digits in a way that names have not: inside, or mixed with capitals."""
    return any(b in _DIGITS for b in value) and b"." not in value and b"_" not in value


def _in_environment(data: bytes, start: int) -> bool:
    """Whether a value stands behind `NAME=`, in capitals and without blanks, as in .env files."""
    if data[start - 1 : start] != b"=":
        return False
    name = re.search(rb"[A-Za-z0-9_]+=$", data[max(0, start - 60) : start])
    return name is not None and name[0].upper() == name[0] and len(name[0]) > 3


def url_password(data: bytes, start: int, end: int) -> bool:
    """The password of a URL, unless a template stands there."""
    value = _value(data, start, end)
    return not _MASK.match(value) and value[:1] not in b"${<%*" and value.lower() not in (
        b"password", b"pass", b"passwd", b"pwd", b"xxx", b"xxxx", b"port",
    )  # fmt: skip


def secret(data: bytes, start: int, end: int) -> bool:
    """A key or token in quotes: long, of letters and digits, and no words."""
    value = _value(data, start, end)
    if not 8 <= end - start <= LONGEST_SECRET or not any(b in _DIGITS for b in value):
        return False
    if _says_nothing(value):
        return False
    if _PATH.match(value) and entropy(value) < 4.2:
        return False
    return _kinds(value) > 1 and entropy(value) >= 2.8 and not _wordy(value)


def bare_secret(data: bytes, start: int, end: int) -> bool:
    """A key or token without quotes: long and random enough to be no name in a program."""
    value = _value(data, start, end)
    if data[end : end + 1] in (b"(", b"["):
        return False
    if _in_environment(data, start):
        return secret(data, start, end)
    return (
        secret(data, start, end)
        and len(value) >= 12
        and not _CODE.match(value)
        or (len(value) >= 16 and secret(data, start, end) and entropy(value) >= 3.2)
    )


def credential(data: bytes, start: int, end: int) -> bool:
    """What follows `Authorization` or `Bearer`: no prose."""
    value = _value(data, start, end)
    if _says_nothing(value) or data[end : end + 1] == b"(" or _wordy(value):
        return False
    return any(b in _DIGITS for b in value) and entropy(value) >= 2.5


def cookie(data: bytes, start: int, end: int) -> bool:
    """A cookie that carries a value of its own."""
    value = _value(data, start, end)
    given = value.partition(b"=")[2].partition(b";")[0]
    return len(given) >= 8 and entropy(given) >= 3.0 and not _says_nothing(given)


def _wordy(value: bytes) -> bool:
    """Whether a value is words, joined by signs, with at most a number at the end of each."""
    parts = [part for part in re.split(rb"[^A-Za-z0-9]+", value) if part]
    return len(parts) > 1 and all(re.fullmatch(rb"[A-Za-z]*\d{0,4}|\d+", part) for part in parts)


def random(data: bytes, start: int, end: int) -> bool:
    """A long token without a name that no hash, identifier, path or embedded file looks like."""
    value = _value(data, start, end)
    if not 28 <= end - start <= 128 or _line_of_data(data, start, end):
        return False
    if start and data[start - 1] in _BEFORE_RANDOM and not _escape(data, start):
        return False
    before = data[max(0, start - 12) : start]
    if re.search(rb"(?i)(?:sha\d{1,3}[-:]|base64,|[#@&%]|://[^\s]*|\\)$", before):
        return False
    if value[:3].lower() == b"sha" or value.count(b"/") > 2 or value.count(b"-") > 2:
        return False
    core = value.rstrip(b"=")
    if b"=" in core or value.count(b"_") > 2 or _kinds(core.translate(None, b"+/_-")) < 3:
        return False
    return entropy(core) >= 4.1 and _turns(core) >= 0.40 and sum(b in _DIGITS for b in core) >= 3


def _line_of_data(data: bytes, start: int, end: int) -> bool:
    """Whether a token fills a line as wide as those of wrapped base64, as in certificates."""
    if end - start not in (60, 64, 70, 72, 76):
        return False
    before, after = data[max(0, start - 2) : start], data[end : end + 2]
    return before.endswith((b"\n", b"\\n", b"")) and after.startswith((b"\n", b"\\n", b"\r"))


def _turns(value: bytes) -> float:
    """Share of places where case, digits and signs change: few in words, many in noise."""
    sorts = [
        0 if 65 <= b <= 90 else 1 if 97 <= b <= 122 else 2 if b in _DIGITS else 3 for b in value
    ]
    return sum(one != other for one, other in zip(sorts, sorts[1:], strict=False)) / len(sorts)


def ssn(data: bytes, start: int, end: int) -> bool:
    """A social security number that may have been given out, not part of a longer number."""
    area, group, serial = data[start:end].split(b"-")
    if _next_to(data, start, end, _WORD | frozenset(b"-.+")):
        return False
    return area not in (b"000", b"666") and area < b"900" and group != b"00" and serial != b"0000"


def _next_to(data: bytes, start: int, end: int, signs: frozenset[int]) -> bool:
    if start and data[start - 1] in signs and not _escape(data, start):
        return True
    if end < len(data) and data[end] in signs:
        # A full stop may end a sentence.
        return data[end] != ord(".") or (end + 1 < len(data) and data[end + 1] in _WORD)
    return False


def _escape(data: bytes, start: int) -> bool:
    """Whether the byte before is the letter of an escape such as the two characters `\\n`."""
    return start > 1 and data[start - 2] == ord("\\") and data[start - 1] in b"nrtbf"


def card(data: bytes, start: int, end: int) -> bool:
    """A card number: an issuer's prefix and length, Luhn's check, evenly cut where it is cut."""
    value = data[start:end]
    digits = value.translate(None, b" -")
    if _next_to(data, start, end, _WORD | frozenset(b"-.")) or len(set(digits)) < 2:
        return False
    if len(value) != len(digits) and not re.fullmatch(
        rb"\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5}", value
    ):
        return False
    if not any(p.match(digits) and len(digits) in sizes for p, sizes in _CARD_LENGTHS):
        return False
    return luhn(digits)


def luhn(digits: bytes) -> bool:
    """Whether the last digit is the check digit of the others."""
    total = 0
    for place, byte in enumerate(reversed(digits)):
        number = byte - 48
        if place % 2:
            number = number * 2 - 9 if number > 4 else number * 2
        total += number
    return total % 10 == 0


def north_american(data: bytes, start: int, end: int) -> bool:
    """Ten digits in three parts, with the same sign between unless the first stands in brackets."""
    value = data[start:end]
    if _next_to(data, start, end, _WORD | frozenset(b"-./")):
        return False
    if value.startswith(b"("):
        return value[4:5] == b")"
    return value[3] == value[7] and value[3:4] != b")" and value[3:4] != b" "


def international(data: bytes, start: int, end: int) -> bool:
    """A number as E.164 has it, with a sign between its parts or of ten digits at least."""
    value = data[start:end]
    size = sum(byte in _DIGITS for byte in value)
    if not 8 <= size <= 15 or _next_to(data, start, end, _WORD | frozenset(b"-.)]+*/")):
        return False
    parts = re.split(rb"[ .()-]+", value[1:])
    if len(parts) == 1:
        # A line that a diff adds also begins with a plus.
        return size >= 10 and start > 0 and data[start - 1 : start] not in (b"\n", b"\r")
    return len([part for part in parts if part]) >= 3 and b"." not in value or size >= 10


def email(data: bytes, start: int, end: int) -> bool:
    """An address of a person or a role; not git's user, nor an image for dense screens."""
    local, _, domain = data[start:end].rpartition(b"@")
    if end - start > 254 or local.rpartition(b"/")[2] == b"git":
        return False
    if re.search(rb"://[^\s/]*$", data[max(0, start - 300) : start]):
        # User and password of a URL; its host may stay.
        return False
    last = domain.rpartition(b".")[2].lower()
    return last not in _NO_DOMAIN and data[end : end + 1] != b"("


def ipv4(data: bytes, start: int, end: int) -> bool:
    """An address of a machine: no version, no mask, no loopback."""
    parts = data[start:end].split(b".")
    if any(len(part) > 1 and part.startswith(b"0") or int(part) > 255 for part in parts):
        return False
    if _next_to(data, start, end, _WORD | frozenset(b".-+")) or parts[1:] == [b"0"] * 3:
        return False
    if parts[0] in (b"0", b"127", b"255") or all(len(part) == 1 for part in parts):
        return False
    before = data[max(0, start - 16) : start].lower()
    return not re.search(rb"(?:version|release|[a-z]/|[=~^<>]=|\bv|\boid)[\s\"':=]{0,4}$", before)


def ipv6(data: bytes, start: int, end: int) -> bool:
    """A global or local address of a machine; not a time, a hardware address or loopback."""
    value = data[start:end]
    if len(value) < 9 or _next_to(data, start, end, _WORD | frozenset(b":.")):
        return False
    if max(map(len, value.split(b":"))) < 3 or (value.count(b":") < 7 and b"::" not in value):
        return False
    try:
        address = IPv6Address(value.decode())
    except AddressValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)
