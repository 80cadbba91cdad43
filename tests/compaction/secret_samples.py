"""Made-up secrets, generated from a seed, and the kinds of text in which they turn up."""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Callable, Iterator
from random import Random

from compaction.redaction.numbers import luhn

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
URLSAFE = ALNUM + "-_"

Make = Callable[[Random], str]


def _of(alphabet: str, size: int) -> Make:
    return lambda r: "".join(r.choices(alphabet, k=size))


def _after(prefix: str, alphabet: str, size: int) -> Make:
    return lambda r: prefix + _of(alphabet, size)(r)


def _b64(size: int) -> Make:
    return lambda r: base64.b64encode(r.randbytes(size)).decode()


def _jwt(r: Random) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    claims = {"sub": str(r.randrange(10**9)), "name": "Ann Example", "iat": r.randrange(10**9)}
    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(claims)}.{_of(URLSAFE, 43)(r)}"


def _hook(r: Random) -> str:
    team, bot = _of("0123456789ABC", 9)(r), _of("0123456789ABC", 9)(r)
    return f"https://hooks.slack.com/services/T{team}/B{bot}/{_of(ALNUM, 24)(r)}"


def _pem(r: Random) -> str:
    body = base64.encodebytes(r.randbytes(600)).decode()
    kind = r.choice(["RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED "])
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{body}-----END {kind}PRIVATE KEY-----"


def _card(r: Random) -> str:
    prefix, size = r.choice([("4", 16), ("51", 16), ("55", 16), ("37", 15), ("6011", 16)])
    digits = prefix + "".join(r.choices("0123456789", k=size - len(prefix) - 1))
    number = next(digits + c for c in "0123456789" if luhn((digits + c).encode()))
    if size == 15:
        return r.choice([number, f"{number[:4]} {number[4:10]} {number[10:]}"])
    cut = [number[at : at + 4] for at in range(0, 16, 4)]
    return r.choice([number, " ".join(cut), "-".join(cut)])


def _ssn(r: Random) -> str:
    return f"{r.randrange(100, 600)}-{r.randrange(1, 100):02}-{r.randrange(1, 10_000):04}"


def _phone(r: Random) -> str:
    area, exchange, line = r.randrange(201, 990), r.randrange(201, 990), r.randrange(10_000)
    return r.choice(
        [
            f"({area}) {exchange}-{line:04}",
            f"{area}-{exchange}-{line:04}",
            f"{area}.{exchange}.{line:04}",
            f"+1 {area} {exchange} {line:04}",
            f"+1-{area}-{exchange}-{line:04}",
            f"+49 30 {r.randrange(10**6, 10**7)}",
            f"+44 20 {r.randrange(1000, 9999)} {r.randrange(1000, 9999)}",
            f"+33 6 {r.randrange(10, 99)} {r.randrange(10, 99)} {r.randrange(10, 99)} 44",
            f"+4915{r.randrange(10**9, 10**10 - 1)}",
        ]
    )


def _email(r: Random) -> str:
    name = r.choice(["ann.lee", "j_smith", "bob+news", "maria-r", "k9", "o.brien"])
    host = r.choice(["corp", "mail", "uni-bonn", "acme", "sub.acme"])
    return f"{name}{r.randrange(100)}@{host}.{r.choice(['com', 'de', 'co.uk', 'io', 'org'])}"


def _ip(r: Random) -> str:
    if r.random() < 0.25:
        groups = [f"{r.randrange(0x1000, 0x10000):x}" for _ in range(6)]
        return r.choice(
            ["2001:db8:" + ":".join(groups), f"2001:{groups[0]}:{groups[1]}::{groups[2]}"]
        )
    return f"{r.randrange(11, 223)}.{r.randrange(256)}.{r.randrange(256)}.{r.randrange(1, 255)}"


def _password(r: Random) -> str:
    word = r.choice(["hunter", "Sommer", "Tr0ub4dor", "letmein", "qwerty", "P@ssw0rd", "dragon"])
    return f"{word}{r.randrange(10, 9999)}{r.choice(['', '!', '#', '%x', '*'])}"


FREE: dict[str, tuple[str, Make]] = {
    "anthropic": ("API_KEY", _after("sk-ant-api03-", URLSAFE, 95)),
    "openai": ("API_KEY", _after("sk-proj-", URLSAFE, 120)),
    "openai old": ("API_KEY", _after("sk-", ALNUM, 48)),
    "github": ("API_KEY", _after("ghp_", ALNUM, 36)),
    "github app": ("API_KEY", _after("ghs_", ALNUM, 36)),
    "github fine": ("API_KEY", _after("github_pat_", ALNUM + "_", 82)),
    "gitlab": ("API_KEY", _after("glpat-", URLSAFE, 20)),
    "slack": ("API_KEY", lambda r: f"xoxb-{r.randrange(10**11, 10**12)}-{_of(ALNUM, 24)(r)}"),
    "slack hook": ("API_KEY", _hook),
    "stripe": ("API_KEY", _after("sk_live_", ALNUM, 24)),
    "stripe restricted": ("API_KEY", _after("rk_test_", ALNUM, 24)),
    "sendgrid": ("API_KEY", lambda r: f"SG.{_of(URLSAFE, 22)(r)}.{_of(URLSAFE, 43)(r)}"),
    "npm": ("API_KEY", _after("npm_", ALNUM, 36)),
    "pypi": ("API_KEY", _after("pypi-AgEIcHlwaS5vcmc", URLSAFE, 60)),
    "hugging face": ("API_KEY", _after("hf_", string.ascii_letters, 34)),
    "twilio": ("API_KEY", _after("SK", HEX, 32)),
    "telegram": ("API_KEY", lambda r: f"{r.randrange(10**8, 10**10)}:AA{_of(URLSAFE, 33)(r)}"),
    "shopify": ("API_KEY", _after("shpat_", HEX, 32)),
    "groq": ("API_KEY", _after("gsk_", ALNUM, 52)),
    "own": ("API_KEY", _after("clk_", ALNUM, 46)),
    "aws id": ("CLOUD_KEY", _after("AKIA", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)),
    "google": ("CLOUD_KEY", _after("AIza", URLSAFE, 35)),
    "google oauth": ("CLOUD_KEY", _after("ya29.", URLSAFE, 120)),
    "digitalocean": ("CLOUD_KEY", _after("dop_v1_", HEX, 64)),
    "vault": ("CLOUD_KEY", _after("hvs.", URLSAFE, 90)),
    "databricks": ("CLOUD_KEY", _after("dapi", HEX, 32)),
    "jwt": ("JWT", _jwt),
    "pem": ("PRIVATE_KEY", _pem),
    "card": ("CARD", _card),
    "ssn": ("SSN", _ssn),
    "phone": ("PHONE", _phone),
    "email": ("EMAIL", _email),
    "ip": ("IP_ADDRESS", _ip),
    "bare base62": ("SECRET", _of(ALNUM, 40)),
    "bare base64": ("SECRET", _b64(32)),
}
"""Secrets that are known wherever they stand."""

NAMED: dict[str, tuple[str, str, Make]] = {
    "password": ("PASSWORD", "password", _password),
    "db password": ("PASSWORD", "DB_PASSWORD", _password),
    "passwd": ("PASSWORD", "smtp_passwd", _password),
    "aws secret": ("SECRET", "aws_secret_access_key", _b64(30)),
    "api key hex": ("SECRET", "API_KEY", _of(HEX, 32)),
    "api key": ("SECRET", "x-api-key", _of(ALNUM, 24)),
    "client secret": ("SECRET", "client_secret", _of(URLSAFE, 34)),
    "token": ("SECRET", "access_token", _of(ALNUM, 30)),
    "azure": ("SECRET", "AccountKey", _b64(64)),
    "signing key": ("SECRET", "SIGNING_KEY", _of(HEX, 64)),
}
"""Secrets that are known by the name in front of them."""

PLACES: dict[str, Callable[[str], str]] = {
    "prose": lambda s: f"The one we use is {s}, please keep it.",
    "log": lambda s: f"2026-11-20T22:17:14.123Z INFO [worker-3] got {s} after 12 ms",
    "python": lambda s: f"    value = {s!r}\n    return value\n",
    "json": lambda s: json.dumps({"a": 1, "note": s, "b": [2]}),
    "json in json": lambda s: json.dumps({"content": json.dumps({"v": s}) + "\n" + s + "\nend"}),
    "diff": lambda s: f"@@ -1,2 +1,2 @@\n-old line\n+    using {s}\n context\n",
    "numbered": lambda s: f"     1\u2192first\n    12\u2192x {s}\n    13\u2192last",
    "table": lambda s: f"| name | value |\n| --- | --- |\n| it | {s} |\n",
}

NAMED_PLACES: dict[str, Callable[[str, str], str]] = {
    "env": lambda n, s: f"DEBUG=1\n{n.upper().replace('-', '_')}={s}\nPORT=80\n",
    "python": lambda n, s: f"{n.replace('-', '_')} = {s!r}\n",
    "yaml": lambda n, s: f"db:\n  {n}: {s}\n  port: 5432\n",
    "json": lambda n, s: json.dumps({n: s, "b": 1}, indent=2),
    "json in json": lambda n, s: json.dumps({"content": json.dumps({n: s})}),
    "diff": lambda n, s: f'-  "{n}": "",\n+  "{n}": "{s}",\n',
    "shell": lambda n, s: f"export {n.upper().replace('-', '_')}='{s}' && make\n",
}

URLS: tuple[Callable[[str], str], ...] = (
    lambda s: f"DATABASE_URL=postgres://app:{s}@db.internal:5432/app",
    lambda s: f"git clone https://bot:{s}@code.acme.io/x.git",
    lambda s: f'{{"redis": "redis://:{s}@10.1.2.3:6379/0"}}',
    lambda s: f"curl -u admin:{s} https://acme.io/v1",
    lambda s: f"sshpass -p {s} ssh me@host",
)


def samples(seed: int = 20261120) -> Iterator[tuple[str, str, str, str]]:
    """(what, kind, text, secret): each secret in each of its places."""
    r = Random(seed)
    for what, (kind, make) in FREE.items():
        for place, put in PLACES.items():
            secret = make(r)
            yield f"{what} in {place}", kind, put(secret), secret
    for what, (kind, name, make) in NAMED.items():
        for place, put_named in NAMED_PLACES.items():
            secret = make(r)
            yield f"{what} in {place}", kind, put_named(name, secret), secret
    for number, put in enumerate(URLS):
        secret = _of(ALNUM, 16)(r)
        yield f"url {number}", "PASSWORD", put(secret), secret
    for scheme in ("Bearer", "Basic", "token"):
        secret = _of(ALNUM, 40)(r)
        yield f"header {scheme}", "BEARER_TOKEN", f"-H 'Authorization: {scheme} {secret}'", secret
