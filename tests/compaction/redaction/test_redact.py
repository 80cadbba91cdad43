"""Secrets are masked everywhere, and everything else stays byte for byte."""

import json
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.context.blocks import Block
from compaction.proposals.plan import Span
from compaction.redaction.numbers import luhn
from compaction.redaction.redact import Masker, mask_span, redact, secrets
from tests.build import Talk
from tests.compaction.secret_samples import samples

ROOT = Path(__file__).parents[3]
PLACEHOLDER = re.compile(r"\[[A-Z_]{3,12}_\d+\]")


@pytest.mark.fault("K6")
@pytest.mark.parametrize("seed", [20261120, 1, 2])
def test_secrets_are_masked_wherever_they_stand(seed: int) -> None:
    missed, total = [], 0
    for what, kind, text, secret in samples(seed):
        total += 1
        masked = redact(text)
        as_json = json.dumps(secret)[1:-1]
        if secret in masked.text or as_json in masked.text or kind not in masked.masked:
            missed.append(f"{what}: {masked.text[:120]}")
    assert total >= 350
    # The product promises best effort; the rest are tokens that look like names or hashes.
    assert len(missed) <= 0.02 * total, missed


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("my ssn is 123-45-6789.", "my ssn is [SSN_1]."),
        ("4111 1111 1111 1111", "[CARD_1]"),
        ("(555) 123-4567", "[PHONE_1]"),
        ("postgres://app:hunter2@db/x", "postgres://app:[PASSWORD_1]@db/x"),
        ("https://me:p%40ss@db.acme.io/x", "https://me:[PASSWORD_1]@db.acme.io/x"),
        ("password is hunter2", "password is [PASSWORD_1]"),
        ("PASSWORD=swordfish", "PASSWORD=[PASSWORD_1]"),
        ('{"password":"ünï9"}', '{"password":"[PASSWORD_1]"}'),
        ('{"content":"a\\nann@acme.io\\n"}', '{"content":"a\\n[EMAIL_1]\\n"}'),
        (
            '{"name": "Cookie", "value": "sid=8fK2mQ9xLw3zR7vT"}',
            '{"name": "Cookie", "value": "[SECRET_1]"}',
        ),
        (
            r"{\"name\":\"Authorization\",\"value\":\"Bearer 8fK2mQ9xLw3z\"}",
            r"{\"name\":\"Authorization\",\"value\":\"Bearer [BEARER_TOKEN_1]\"}",
        ),
        (
            '{"key":"DB_PASSWORD",\n"value":"hunter2-x"}',
            '{"key":"DB_PASSWORD",\n"value":"[PASSWORD_1]"}',
        ),
        ("ann@acme.io, bob@acme.io, ann@acme.io", "[EMAIL_1], [EMAIL_2], [EMAIL_1]"),
        ("[EMAIL_4] and ann@acme.io", "[EMAIL_4] and [EMAIL_5]"),
    ],
)
def test_a_mask_takes_the_secret_and_nothing_else(text: str, masked: str) -> None:
    assert redact(text).text == masked


@pytest.mark.parametrize(
    "text",
    [
        "d41d8cd98f00b204e9800998ecf8427e da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "550e8400-e29b-41d4-a716-446655440000",
        '"integrity": "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs1"',
        "1.2.3.4 v10.20.30.40 numpy==1.26.4 Chrome/120.0.6099.109 version 10.20.30.40",
        "2026-11-20 22:17:14 1700000000000 12:34:56 3.14159265358979 4111111111111112",
        "toolu_01SoeKGnapnTuusrzXc3jHnL call_xP2E8KzesSGihSRX16BGgjQT req_011CYAA8aJLF2YiNXa",
        '"sessionId":"58edcfae-5291-436c-91e4-54fbb188a0ca"',
        "/usr/lib/python3.11/site-packages/django/db/models/fields/__init__.py",
        "src/components/UserProfileSettingsPanelV2.tsx m12.0@3fa9c1d2 toolu_01A09q90qw90lq9",
        "password = get_password(user); password: str; token = self.tokens[0]",
        'secret = os.environ["SECRET"]; const password: string = props.password',
        "password=${DB_PASSWORD} password: <your password> token=$TOKEN PASSWORD=***",
        "--token TOKEN --password PASSWORD Authorization: Bearer <token>",
        "git@github.com:acme/repo.git icon@2x.png std::vector<int> a[::2] 00:1a:2b:3c:4d:5e",
        "127.0.0.1:8765 0.0.0.0 255.255.255.0 10.0.0.0/8 8.8.8.8 ::1",
        "index 83db48f..f7353ae 100644; 111-222; 987-65-4321; 000-12-3456",
        'KEY = "-----BEGIN RSA PRIVATE KEY-----"  # how such files begin',
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text).text == text


def _false_alarms(files: list[Path]) -> tuple[int, float]:
    """Masks other than addresses of authors, and megabytes."""
    count, size = 0, 0
    for file in files:
        data = file.read_bytes()
        size += len(data)
        count += sum(found.kind != "EMAIL" for found in secrets(data))
    return count, size / 1e6


@pytest.mark.fault("K6")
def test_clean_code_is_not_eaten() -> None:
    standard = [
        file
        for file in Path(json.__file__).parents[1].rglob("*.py")
        if not {"site-packages", "test", "tests", "idlelib"} & set(file.parts)
    ]
    for folder in ("compaction", "sessions", "contextlab", "docs"):
        standard += (ROOT / folder).rglob("*.py")
        standard += (ROOT / folder).rglob("*.md")
    count, megabytes = _false_alarms(standard)
    assert megabytes > 5, sys.version
    assert count / megabytes < 10


TRICKY = st.sampled_from(
    ["password=", 'api_key: "', "ann@acme.io", "\\n", "é", "😀", "\ud800", "[EMAIL_1]", " ", '"',
     "sk-ant-api03-abcdefghijk123456789", "10.1.2.3", ":", "-----BEGIN PRIVATE KEY-----", "\n",
     "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF", "4111111111111111", "Authorization: Bearer x9"]
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(TRICKY | st.text(max_size=8), max_size=30).map("".join))
def test_a_masked_text_holds_nothing_to_mask(text: str) -> None:
    masked = redact(text).text
    # Everything not masked is unchanged, in order, on whole code points.
    at = 0
    for part in re.split(PLACEHOLDER, masked):
        at = text.index(part, at) + len(part)
    assert redact(masked).text == masked


@pytest.mark.fault("F11")
@pytest.mark.parametrize(
    "piece",
    ["a@", "1.1.1.1 ", "password='", "-----BEGIN PRIVATE KEY-----\n", "http://a:", "4111 ", ":"],
)
def test_hostile_texts_are_passed_over(piece: str) -> None:
    text = piece * (300_000 // len(piece))
    assert redact(text).masked == {}


def test_a_cut_off_key_is_masked_as_far_as_it_goes() -> None:
    body = "\n".join("MIIEpAIBAAKCAQEA" * 4 for _ in range(3))
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}"
    assert redact(f"before\n{key}\n\nThat was it.").text == (
        "before\n[PRIVATE_KEY_1]\n\nThat was it."
    )


@pytest.mark.parametrize(
    ("digits", "valid"),
    [(b"4111111111111111", True), (b"4111111111111112", False), (b"79927398713", True)],
)
def test_luhn(digits: bytes, valid: bool) -> None:
    assert luhn(digits) is valid


def test_numbers_go_on_over_texts_that_belong_together() -> None:
    masker = Masker()
    masker.know("said before: [EMAIL_2]")
    assert masker.mask("ann@acme.io") == "[EMAIL_3]"
    assert masker.mask("bob@acme.io ann@acme.io") == "[EMAIL_4] [EMAIL_3]"
    assert masker.masked == {"EMAIL": 3}


def test_a_span_is_masked_once_and_evenly() -> None:
    talk = Talk()
    talk.user("write to ann@acme.io")
    talk.respond()
    use = talk.call("Bash", {"command": "mail ann@acme.io -s x\npassword=hunter2"})
    talk.result(use, "sent to bob@acme.io")
    blocks: tuple[Block, ...] = tuple(talk.blocks)
    span = Span("nine", blocks, blocks, "wrote to [EMAIL_1]", 500, blocks[:1], "tell ann@acme.io")
    masked, counts = mask_span(span)
    assert [block.text for block in masked.blocks] == [
        "write to [EMAIL_2]",
        '{"command":"mail [EMAIL_2] -s x\\npassword=[PASSWORD_1]"}',
        "sent to [EMAIL_3]",
    ]
    assert masked.originals == masked.blocks
    assert masked.previous == "wrote to [EMAIL_1]"
    assert masked.instructions == "tell [EMAIL_2]"
    assert counts == {"EMAIL": 4, "PASSWORD": 1}
    assert span.blocks[0].text == "write to ann@acme.io"


@pytest.mark.fault("K7")
@pytest.mark.parametrize("mark", ["pragma: allowlist secret", "gitleaks:allow", "noqa: S105"])
def test_marks_for_linters_have_no_effect(mark: str) -> None:
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    masked = redact(f'TOKEN = "{token}"  # {mark}')
    assert token not in masked.text and masked.masked


@pytest.mark.fault("K7")
@pytest.mark.parametrize("edge", [4096, 8192, 65_536, 100_000])
def test_a_secret_at_any_edge_is_masked(edge: int) -> None:
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    for before in range(edge - len(token) - 1, edge + 2, 7):
        assert token not in redact("x\n" * (before // 2) + token + " end").text
