"""Patterns of secrets and personal data, most specific first, and the checks they must pass.

All patterns run over UTF-8 bytes with RE2, in time linear in the text. They are unbounded if a
match consumes everything examined, and short otherwise, so that finding all matches is linear too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import re2

from compaction.redaction import checks as check
from compaction.redaction import numbers as number

MaskKind = Literal[
    "PRIVATE_KEY",
    "API_KEY",
    "CLOUD_KEY",
    "JWT",
    "BEARER_TOKEN",
    "PASSWORD",
    "SECRET",
    "CARD",
    "SSN",
    "PHONE",
    "EMAIL",
    "IP_ADDRESS",
]

Check = Callable[[bytes, int, int], bool]
"""Returns whether the bytes from start to end are what the rule looks for."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern whose group 1 is masked if the check accepts it."""

    kind: MaskKind
    pattern: bytes
    passes: Check = check.always


_BEGIN = rb"(?:\b|\\[nrtbf]|%[0-9A-F]{2})"
"""Where a token may begin: also after an escape, whose letter does not belong to it."""


def _token(*bodies: bytes) -> bytes:
    return _BEGIN + rb"(" + b"|".join(bodies) + rb")"


_API_KEYS = _token(
    rb"sk-ant-[A-Za-z0-9_-]{16,}",
    rb"sk-(?:proj|svcacct|admin|or-v1|lf)-[A-Za-z0-9_-]{16,}",
    rb"gh[pousr]_[A-Za-z0-9]{30,}",
    rb"github_pat_[A-Za-z0-9_]{30,}",
    rb"gl(?:pat|ptt|dt|rt|cbt|ft|soat|imt|agent)-[A-Za-z0-9_-]{20,}",
    rb"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    rb"xapp-\d-[A-Za-z0-9-]{20,}",
    rb"[srp]k_(?:live|test|prod)_[A-Za-z0-9]{16,}",
    rb"whsec_[A-Za-z0-9+/=]{24,}",
    rb"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{30,}",
    rb"npm_[A-Za-z0-9]{36}",
    rb"pypi-AgE[A-Za-z0-9_-]{40,}",
    rb"hf_[A-Za-z0-9]{30,}",
    rb"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    rb"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}",
    rb"lin_(?:api|oauth)_[A-Za-z0-9]{32,}",
    rb"(?:ntn_|secret_)[A-Za-z0-9]{40,}",
    rb"PMAK-[0-9a-f]{24}-[0-9a-f]{34}",
    rb"gl(?:c|sa)_[A-Za-z0-9_+/=]{32,}",
    rb"NRA[KL]-[A-Z0-9]{27}",
    rb"sntry[su]_[A-Za-z0-9+/=_-]{40,}",
    rb"dp\.(?:pt|st|sa|ct|scim|audit)\.[A-Za-z0-9.]{40,}",
    rb"(?:gsk|xai|pplx|r8|fw|csk|tvly|nvapi)[-_][A-Za-z0-9_-]{30,}",
    rb"sbp_[0-9a-f]{40}",
    rb"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}",
    rb"rubygems_[0-9a-f]{48}",
    rb"figd_[A-Za-z0-9_-]{36,}",
    rb"ATATT3[A-Za-z0-9_=-]{50,}",
    rb"tskey-[a-z]+-[A-Za-z0-9_-]{16,}",
    rb"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{30,}",
    rb"(?:lsv2|ls)_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}",
    rb"clk_[A-Za-z0-9]{46}",
    rb"[0-9a-f]{32}-us[0-9]{1,2}\b",
    rb"key-[0-9a-f]{32}\b",
    rb"(?:SK|AC)[0-9a-f]{32}\b",
    rb"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",
    rb"[MNO][A-Za-z0-9]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}",
    rb"[sp]k\.eyJ[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{20,}",
    rb"AGE-SECRET-KEY-1[A-Z0-9]{50,}",
    rb"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}",
)

_PLAIN_SK = _token(rb"sk-[A-Za-z0-9]{20,}")

_HOOKS = (
    rb"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|"
    rb"discord(?:app)?\.com/api/webhooks/|webhook\.office\.com/webhookb2/)([A-Za-z0-9/_@-]{20,})"
)

_CLOUD_KEYS = _token(
    rb"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
    rb"(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    rb"AIza[A-Za-z0-9_-]{35}",
    rb"GOCSPX-[A-Za-z0-9_-]{24,}",
    rb"ya29\.[A-Za-z0-9_-]{20,}",
    rb"1//0[A-Za-z0-9_-]{40,}",
    rb"do[opr]_v1_[0-9a-f]{64}",
    rb"dapi[0-9a-f]{32}(?:-\d)?",
    rb"hv[sbr]\.[A-Za-z0-9_-]{24,}",
    rb"LTAI[A-Za-z0-9]{12,20}\b",
    rb"fo1_[A-Za-z0-9_-]{40,}",
    rb"fm[12][ar]?_[A-Za-z0-9+/=_-]{60,}",
    rb"HRKU-[A-Za-z0-9_-]{30,}",
    rb"[A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{31,34}",
)

_AZURE = rb"(?i)(?:AccountKey|SharedAccessKey|sig)=([A-Za-z0-9+/%]{40,}(?:=|%3D){0,2})"

_JWT = _token(rb"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?")

_HEADER = (
    rb"(?i)\bauthorization\\?[\"']?[ \t]{0,2}[:,][ \t]{0,2}\\?[\"']?"
    rb"(?:basic|bearer|token|apikey|bot|digest)?[ \t]{1,2}([A-Za-z0-9._~+/=:-]{8,})"
)
_BEARER = rb"(?i)\bbearer[ \t]{1,2}([A-Za-z0-9._~+/-]{12,}={0,2})"
_COOKIE = rb"(?i)\b(?:set-)?cookie\\?[\"']?:[ \t]{0,2}\\?[\"']?([^\s=;\"'\\]+=[^\r\n\"'\\]{6,})"

_URL = rb"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@\"'<>\\]*:([^\s/\"'<>\\]{1,200})@[A-Za-z0-9_\[{$%.-]"
_USER = (
    rb"(?:\bcurl\b[^\r\n]{0,200}?|\s)(?:-u|--user)[ =]\\?[\"']?[^\s:\"'\\/]{1,64}:([^\s\"'\\]{4,})"
)
_SSHPASS = rb"\bsshpass[ \t]+-p[ \t]*\\?[\"']?([^\s\"'\\]{4,})"
_SQL = rb"(?i)\b(?:identified[ \t]+by|password)[ \t]+\\?'([^'\r\n\\]{4,})\\?'"

_PASSWORD_NAME = rb"(?:password|passwd|passphrase|passcode|pwd|kennwort|passwort|mot_de_passe)"
_SECRET_NAME = (
    rb"(?:secret|api[_-]?key|access[_-]?key(?:[_-]?id)?|auth[_-]?key|token|credentials?|"
    rb"private[_-]?key|(?:encryption|signing|master|account|shared|secret|app|license)[_-]?key|"
    rb"client[_-]?secret|webhook[_-]?url)"
)
_EQUALS = rb"\\?[\"'`]?\]?[ \t]{0,3}(?:={1,3}|:=|=>|:|!=)[ \t]{0,3}"
_IS = rb"[ \t]+(?:is|was|to)(?:[ \t]*:)?[ \t]+[\"'`]?"
_QUOTED = rb"[bruf]?\\?[\"'`]([^\s\"'`\\]{4,})\\?[\"'`]"
_BARE = rb"([^\s\"'`\\,;<>(){}\[\]$&|]{4,})"


def _option(name: bytes) -> bytes:
    return rb"(?i)--[a-z0-9-]*" + name + rb"(?:[ \t]+|=)\\?[\"']?([^\s\"'\\]{4,})"


def _beside(name: bytes, value: bytes) -> bytes:
    """The value of an object with a name and a value, as in lists of headers."""
    quote, then = rb"\\*[\"']", rb"[ \t\r\n]{0,8}"
    of = rb"(?i)" + quote + rb"(?:name|key|header)" + quote + then + rb":" + then + quote
    beside = quote + then + rb"," + then + quote + rb"value" + quote + then + rb":" + then + quote
    return of + name + beside + value


_IPV6 = rb"([0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){3,7})"
_PHONE_NAMED = (
    rb"(?i)\b(?:phone|tel|telephone|mobile|fax)(?:[ _-]?(?:number|no|nr))?\\?[\"']?"
    rb"[ \t]{0,2}[:=]{1,2}[ \t]{0,2}\\?[\"']?([+(]?[0-9][0-9 ()./-]{5,20}[0-9])"
)

_FORMATS = (
    Rule("API_KEY", _API_KEYS),
    Rule("API_KEY", _PLAIN_SK, check.mixed),
    Rule("API_KEY", _HOOKS),
    Rule("CLOUD_KEY", _CLOUD_KEYS),
    Rule("CLOUD_KEY", _AZURE),
    Rule("JWT", _JWT),
)
_NAMED = (
    Rule("BEARER_TOKEN", _HEADER, check.credential),
    Rule("BEARER_TOKEN", _BEARER, check.credential),
    Rule("SECRET", _COOKIE, check.cookie),
    Rule(
        "BEARER_TOKEN",
        _beside(
            rb"(?:proxy-)?authorization",
            rb"(?:(?:basic|bearer|token|bot)[ \t]{1,2})?([A-Za-z0-9._~+/=:-]{8,})",
        ),
        check.credential,
    ),
    Rule(
        "SECRET", _beside(rb"(?:set-)?cookie", rb"([^\s=;\"'\\]+=[^\r\n\"'\\]{6,})"), check.cookie
    ),
    Rule(
        "SECRET",
        _beside(rb"[a-z0-9_.-]{0,40}" + _SECRET_NAME, rb"([^\s\"'\\]{8,})"),
        check.secret,
    ),
    Rule(
        "PASSWORD",
        _beside(rb"[a-z0-9_.-]{0,40}" + _PASSWORD_NAME, rb"([^\s\"'\\]{4,})"),
        check.password,
    ),
    Rule("PASSWORD", _URL, check.url_password),
    Rule("PASSWORD", _USER, check.password),
    Rule("PASSWORD", _SSHPASS, check.password),
    Rule("PASSWORD", _SQL, check.quoted_in_query),
    Rule("PASSWORD", rb"(?i)" + _PASSWORD_NAME + _EQUALS + _QUOTED, check.password),
    Rule("PASSWORD", rb"(?i)" + _PASSWORD_NAME + _EQUALS + _BARE, check.bare_password),
    Rule("PASSWORD", _option(_PASSWORD_NAME), check.mixed_password),
    Rule("PASSWORD", rb"(?i)" + _PASSWORD_NAME + _IS + _BARE, check.mixed_password),
    Rule("SECRET", rb"(?i)" + _SECRET_NAME + _EQUALS + _QUOTED, check.secret),
    Rule("SECRET", rb"(?i)" + _SECRET_NAME + _EQUALS + _BARE, check.bare_secret),
    Rule("SECRET", _option(_SECRET_NAME), check.secret),
)
_NUMBERS = (
    Rule("SSN", rb"([0-9]{3}-[0-9]{2}-[0-9]{4})\b", number.ssn),
    Rule("SSN", rb"(?i)\bssn\\?[\"']?[ \t]{0,2}[:=#][ \t]{0,2}\\?[\"']?([0-9]{9})\b"),
    Rule("CARD", rb"([0-9](?:[ -]?[0-9]){12,18})", number.card),
    Rule("PHONE", _PHONE_NAMED),
    Rule("PHONE", rb"(\+[1-9][0-9]{0,2}(?:[ .-]?\(?[0-9]{1,5}\)?){2,6})", number.international),
    Rule("PHONE", rb"(\(?[2-9][0-9]{2}\)?[ .-][0-9]{3}[ .-][0-9]{4})\b", number.north_american),
    Rule("EMAIL", rb"([A-Za-z0-9._%+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,24})", number.email),
    Rule("IP_ADDRESS", rb"([0-9]{1,3}(?:\.[0-9]{1,3}){3})", number.ipv4),
    Rule("IP_ADDRESS", _IPV6, number.ipv6),
)
_RANDOM = (Rule("SECRET", rb"([A-Za-z0-9+/_=-]{28,})", check.random),)

GROUPS: tuple[tuple[Rule, ...], ...] = (_FORMATS, _NAMED, _NUMBERS, _RANDOM)
"""Rules whose patterns are fast as one, too; more in a group have too many states. `PRIVATE_KEY`
belongs to the first."""

RULES = tuple(rule for group in GROUPS for rule in group)

PRIVATE_KEY = rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----|PuTTY-User-Key-File-[0-9]:"
"""The start of a private key; `redact._private_keys` finds its end."""


_MEMORY = 64 << 20
"""Bytes for the states of a group's pattern, so that they are made once."""


@cache
def compiled(pattern: bytes) -> Any:
    """Compile a pattern for bytes."""
    return re2.compile(pattern, _options())


@cache
def any_of(group: int) -> Any:
    """Compile the patterns of a group as one, which tells where any of them matches."""
    patterns = [rule.pattern for rule in GROUPS[group]] + ([PRIVATE_KEY] if group == 0 else [])
    options = _options()
    options.never_capture, options.max_mem = True, _MEMORY
    return re2.compile(b"|".join(b"(?:" + one + b")" for one in patterns), options)


def _options() -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    return options
