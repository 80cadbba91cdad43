"""Checks whether a match is a secret rather than code, a version or a dummy value.

Every check takes the whole text as bytes and the place of the match, and looks at a few bytes
around it only.
"""

from __future__ import annotations

import re
from math import log2

LONGEST = 512
"""Maximum bytes of a password (our choice)."""

LONGEST_SECRET = 8_192
"""Maximum bytes of a token (our choice): temporary cloud credentials are the longest."""

_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
DIGITS = frozenset(b"0123456789")
WORD = _LETTERS | DIGITS | frozenset(b"_")

_BEFORE_RANDOM = WORD | frozenset(b".+")

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
_NAMED_ID = re.compile(rb"[a-z]{2,12}[_-](?:[0-9]{2}[_-]?)?")
"""Id prefixes such as toolu_01, call_, msg_ or req_; keys with a prefix have their own rule."""

_PATH = re.compile(rb"(?:[.~]{0,2}/|[A-Za-z]:[\\/]|https?://|file:|data:)")


def always(data: bytes, start: int, end: int) -> bool:  # noqa: ARG001
    """Accept every match: the pattern is sufficient."""
    return True


def _value(data: bytes, start: int, end: int) -> bytes:
    return data[start : min(end, start + LONGEST)]


def entropy(value: bytes) -> float:
    """Return the bits per byte, by the frequency of each byte in this value."""
    counts = [value.count(byte) for byte in set(value)]
    return -sum(n / len(value) * log2(n / len(value)) for n in counts)


def _kinds(value: bytes) -> int:
    """Count how many of uppercase, lowercase, digits and symbols a value mixes."""
    return sum(
        (
            any(65 <= byte <= 90 for byte in value),
            any(97 <= byte <= 122 for byte in value),
            any(byte in DIGITS for byte in value),
            any(byte not in WORD for byte in value),
        )
    )


def _says_nothing(value: bytes) -> bool:
    """Return whether a value is a dummy: a variable, a type, a mask, dots."""
    return bool(_NO_VALUE.match(value) or _MASK.match(value)) or len(set(value)) < 3


def mixed(data: bytes, start: int, end: int) -> bool:
    """Accept letters mixed with digits, as in keys but not in words."""
    value = _value(data, start, end)
    return any(b in DIGITS for b in value) and entropy(value) >= 2.0


def password(data: bytes, start: int, end: int) -> bool:
    """Accept a quoted password: anything but a dummy or part of a template."""
    value = _value(data, start, end)
    if end - start > LONGEST or value.startswith((b"=", b"/", b"+")) or _says_nothing(value):
        return False
    if b"pass" in value.lower() and re.fullmatch(rb"[A-Za-z_.:-]+", value):
        # Looks like the name of a field, a message or a setting.
        return False
    return not (_PATH.match(value) and value.count(b"/") > 1)


def bare_password(data: bytes, start: int, end: int) -> bool:
    """Accept an unquoted value after `password=` that is more than a name in a program."""
    value = _value(data, start, end).rstrip(b".")
    if not password(data, start, end) or value.isdigit() and len(value) < 6:
        return False
    if _in_environment(data, start):
        return True
    if data[end : end + 1] in (b"(", b"[", b"{") or _CODE.match(value) and not _odd(value):
        return False
    return _kinds(value) > 1 and any(b in DIGITS or b not in WORD for b in value)


def mixed_password(data: bytes, start: int, end: int) -> bool:
    """Accept a value after `--password` or `password is` that is more than a word."""
    return password(data, start, end) and mixed(data, start, end)


def quoted_in_query(data: bytes, start: int, end: int) -> bool:
    """Accept a quoted value after `identified by` that is more than a word."""
    return password(data, start, end) and _kinds(_value(data, start, end)) > 1


def _odd(value: bytes) -> bool:
    """Return whether a name has digits where names do not: inside, or mixed with capitals."""
    return any(b in DIGITS for b in value) and b"." not in value and b"_" not in value


def _in_environment(data: bytes, start: int) -> bool:
    """Return whether a value follows `NAME=`, in capitals and without blanks, as in .env files."""
    if data[start - 1 : start] != b"=":
        return False
    name = re.search(rb"(?<![A-Za-z0-9_])[A-Za-z0-9_]+=$", data[max(0, start - 60) : start])
    return name is not None and name[0].upper() == name[0] and len(name[0]) > 3


def url_password(data: bytes, start: int, end: int) -> bool:
    """Accept the password of a URL unless it is a template."""
    value = _value(data, start, end)
    return not _MASK.match(value) and value[:1] not in b"${<%*" and value.lower() not in (
        b"password", b"pass", b"passwd", b"pwd", b"xxx", b"xxxx", b"port",
    )  # fmt: skip


def secret(data: bytes, start: int, end: int) -> bool:
    """Accept a quoted key or token: long, with letters and digits, and without words."""
    value = _value(data, start, end)
    if not 8 <= end - start <= LONGEST_SECRET or not any(b in DIGITS for b in value):
        return False
    if _says_nothing(value):
        return False
    if _PATH.match(value) and entropy(value) < 4.2:
        return False
    return _kinds(value) > 1 and entropy(value) >= 2.8 and not _wordy(value)


def bare_secret(data: bytes, start: int, end: int) -> bool:
    """Accept an unquoted key or token that is too long and random for a name in a program."""
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
    """Accept a value after `Authorization` or `Bearer` that is not prose."""
    value = _value(data, start, end)
    if _says_nothing(value) or data[end : end + 1] == b"(" or _wordy(value):
        return False
    return any(b in DIGITS for b in value) and entropy(value) >= 2.5


def cookie(data: bytes, start: int, end: int) -> bool:
    """Accept a cookie with a value of its own."""
    value = _value(data, start, end)
    given = value.partition(b"=")[2].partition(b";")[0]
    return len(given) >= 8 and entropy(given) >= 3.0 and not _says_nothing(given)


def _wordy(value: bytes) -> bool:
    """Return whether a value is words joined by symbols, each with at most a trailing number."""
    parts = [part for part in re.split(rb"[^A-Za-z0-9]+", value) if part]
    return len(parts) > 1 and all(re.fullmatch(rb"[A-Za-z]*\d{0,4}|\d+", part) for part in parts)


def random(data: bytes, start: int, end: int) -> bool:
    """Accept a long token that is not a hash, identifier, path or embedded file."""
    value = _value(data, start, end)
    if not 28 <= end - start <= 128 or _line_of_data(data, start, end):
        return False
    if start and data[start - 1] in _BEFORE_RANDOM and not after_escape(data, start):
        return False
    before = data[max(0, start - 12) : start]
    if re.search(rb"(?i)(?:sha\d{1,3}[-:]|base64,|[#@&%]|://[^\s]*|\\)$", before):
        return False
    if _NAMED_ID.match(value) or value[:3].lower() == b"sha":
        return False
    if value.count(b"/") > 2 or value.count(b"-") > 2:
        return False
    core = value.rstrip(b"=")
    if b"=" in core or value.count(b"_") > 2 or _kinds(core.translate(None, b"+/_-")) < 3:
        return False
    return entropy(core) >= 4.1 and _turns(core) >= 0.40 and sum(b in DIGITS for b in core) >= 3


def _line_of_data(data: bytes, start: int, end: int) -> bool:
    """Return whether a token fills a line of wrapped base64, as in certificates."""
    if end - start not in (60, 64, 70, 72, 76):
        return False
    before, after = data[max(0, start - 2) : start], data[end : end + 2]
    return before.endswith((b"\n", b"\\n", b"")) and after.startswith((b"\n", b"\\n", b"\r"))


def _turns(value: bytes) -> float:
    """Return the share of places where the kind of character changes: high in noise."""
    sorts = [
        0 if 65 <= b <= 90 else 1 if 97 <= b <= 122 else 2 if b in DIGITS else 3 for b in value
    ]
    return sum(one != other for one, other in zip(sorts, sorts[1:], strict=False)) / len(sorts)


def after_escape(data: bytes, start: int) -> bool:
    r"""Return whether the byte before is the letter of an escape such as `\\n`."""
    return start > 1 and data[start - 2] == ord("\\") and data[start - 1] in b"nrtbf"
