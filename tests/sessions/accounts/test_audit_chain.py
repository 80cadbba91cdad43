"""The chain of the audit log: what breaks it, what does not, and who may write under which name."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction

from sessions.actions.accounts import audit, chain
from sessions.actions.accounts.accounts import change_profile, check_name
from sessions.actions.accounts.pseudonyms import erase_from_log
from sessions.actions.notifications.announce import MOST_AN_HOUR
from sessions.actions.notifications.channels import add_channel, put_rule
from sessions.actions.notifications.written import as_json
from sessions.actions.record import checks
from sessions.models import AuditEntry, Team
from tests.sessions.people import acts, browser, member, sign_in

pytestmark = [pytest.mark.store, pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]
TABLE = "agent_sessions_auditentry"


@pytest.fixture
def team(db: None) -> Team:
    return Team.objects.create(slug="ours", name="Ours")


@pytest.fixture
def entries(team: Team) -> list[AuditEntry]:
    return [audit.note(team, audit.COMMAND, "thing.made", f"n{n}", size=n / 2) for n in range(5)]


def verified(*options: str) -> tuple[int, str]:
    """Exit code and output of `contextlab audit verify`."""
    out = StringIO()
    try:
        call_command("audit", "verify", *options, stdout=out)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue()
    return 0, out.getvalue()


def forge(statement: str, *values: Any) -> None:
    """What a person with the database's password can do."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute(f"ALTER TABLE {TABLE} DISABLE TRIGGER USER")
            cursor.execute(statement, values)
            cursor.execute(f"ALTER TABLE {TABLE} ENABLE TRIGGER USER")
            return
        cursor.execute(f"SELECT name, sql FROM sqlite_master WHERE tbl_name = '{TABLE}'"
                       " AND type = 'trigger'")  # fmt: skip
        triggers = cursor.fetchall()
        for name, _ in triggers:
            cursor.execute(f"DROP TRIGGER {name}")
        cursor.execute(statement, values)
        for _, sql in triggers:
            cursor.execute(sql)


def test_an_intact_log_is_ok(entries: list[AuditEntry]):
    assert verified() == (0, f"ok      team ours: 5 entries, last hash {entries[-1].hash}\n")
    assert [row.previous for row in entries] == ["", *(row.hash for row in entries[:-1])]
    parts = [part for part in checks.parts("audit entries") if part.stage == "audit entries"]
    assert (sum(part.rows for part in parts), [part.findings for part in parts]) == (5, [[], []])


@pytest.mark.parametrize(
    "change",
    [
        {"actor": "another person"}, {"named": "x"}, {"detail": {}}, {"hash": "0" * 64},
        {"named": "erased-1", "named_salt": "a" * 64, "at": "2026-01-01T00:00Z"},
        {"named": "mara", "named_id": None, "named_salt": "a" * 64},
        {"actor": "erased-1", "ip": "", "actor_salt": "b" * 32},
    ],
)  # fmt: skip
def test_an_entry_cannot_be_changed(entries: list[AuditEntry], change: dict[str, Any]):
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        AuditEntry.objects.filter(pk=entries[1].pk).update(**change)


def test_entries_cannot_be_deleted(entries: list[AuditEntry]):
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        AuditEntry.objects.filter(pk=entries[4].pk).delete()
    with pytest.raises(DatabaseError), transaction.atomic():
        entries[0].team.delete()
    assert AuditEntry.objects.count() == 5


@pytest.mark.fault("K5")
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE {} SET named = 'x' WHERE number = 3", "entry 3: its content does not match"),
        ("UPDATE {} SET actor_id = 7 WHERE number = 2", "entry 2: its content does not match"),
        ("DELETE FROM {} WHERE number = 1", "entry 1: the entry is missing"),
        ("DELETE FROM {} WHERE number = 4", "entry 4: the entry is missing"),
        ("UPDATE {} SET previous = hash WHERE number = 5", "entry 5: it does not follow"),
    ],
)
def test_the_first_broken_link_is_named(entries: list[AuditEntry], statement: str, said: str):
    forge(statement.format(TABLE))
    code, out = verified()
    assert (code, out.startswith(f"BROKEN  team ours, {said}")) == (1, True), out
    findings = [one for part in checks.parts("audit entries") for one in part.findings]
    assert [str(one) for one in findings if said in str(one)]


def test_a_missing_trigger_is_named(team: Team):
    name = f"{TABLE}_keeps"
    with connection.cursor() as cursor:
        on = f" ON {TABLE}" if connection.vendor == "postgresql" else ""
        cursor.execute(f"DROP TRIGGER {name}{on}")
    assert verified() == (1, f"ok      team ours: 0 entries\nBROKEN  trigger {name} is missing\n")


def test_an_end_that_was_cut_off_differs_from_an_earlier_export(
    entries: list[AuditEntry], tmp_path: Path
):
    out, file = StringIO(), tmp_path / "log.jsonl"
    call_command("audit", "export", "--team", "ours", stdout=out)
    file.write_text(out.getvalue())
    assert [json.loads(line)["number"] for line in out.getvalue().splitlines()] == [1, 2, 3, 4, 5]
    assert acts(entries[0].team)[-1][0] == "export.made"
    assert verified("--against", str(file))[0] == 0
    forge(f"DELETE FROM {TABLE} WHERE number >= 5")
    audit.note(entries[0].team, audit.COMMAND, "thing.made", "another")
    assert verified()[0] == 0, "the chain alone cannot tell"
    code, said = verified("--against", str(file))
    assert (code, "team ours, entry 5: the log has another entry" in said) == (1, True), said
    file.write_text(out.getvalue().replace('"n2"', '"x"'))
    assert "entry 3: the export does not match its own hash" in verified("--against", str(file))[1]
    file.write_text("{}")
    with pytest.raises(CommandError, match="not an export of the audit log"):
        verified("--against", str(file))


def test_each_team_has_a_chain_of_its_own(entries: list[AuditEntry]):
    other = Team.objects.create(slug="theirs", name="Theirs")
    assert audit.note(other, audit.COMMAND, "thing.made").number == 1
    assert audit.note(entries[0].team, audit.COMMAND, "thing.made").number == 6
    assert verified("--team", "theirs")[1].count("\n") == 1


@pytest.mark.django_db(transaction=True)
def test_entries_written_at_once_make_one_chain(team: Team):
    def write(name: int) -> None:
        try:
            for number in range(10):
                audit.note(team, audit.COMMAND, "thing.made", f"{name}.{number}")
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    assert isinstance(found := chain.check(team), chain.Head)
    assert found.number == 40


# Names


def test_a_name_is_erased_and_the_chain_holds(team: Team):
    mara, jo = member(team, "mara"), member(team, "jo")
    change_profile(mara, "Mara2", "m@example.org", audit.person(mara, "10.0.0.1"))
    audit.note(team, audit.person(jo), "role.changed", mara, before="owner", role="editor")
    audit.note(team, audit.person(jo), "key.taken", "ci", before="mara")
    audit.note(team, audit.person(jo), "channel.made", "x", address="a@b.org m@example.org")
    audit.note(team, audit.stranger("10.0.0.2"), "login.failed", mara, how="password")
    audit.note(team, audit.person(jo), "key.made", "mara")  # a key may be called like that
    pseudonym = erase_from_log(team, mara, audit.person(jo))
    stored = json.dumps([chain.line_of(row) for row in AuditEntry.objects.order_by("number")])
    for gone in ("Mara2", "m@example.org", "10.0.0.1", "10.0.0.2"):
        assert gone not in stored
    assert acts(team) == [
        ("name.changed", pseudonym, pseudonym), ("email.changed", pseudonym, pseudonym),
        ("role.changed", "jo", pseudonym), ("key.taken", "jo", "ci"), ("channel.made", "jo", "x"),
        ("login.failed", pseudonym, pseudonym), ("key.made", "jo", "mara"),
        ("person.erased", "jo", pseudonym),
    ]  # fmt: skip
    assert AuditEntry.objects.get(action="role.changed").detail == {
        "before": "owner", "role": "editor"
    }  # fmt: skip
    assert AuditEntry.objects.get(action="key.taken").detail == {"before": pseudonym}
    code, out = verified()
    assert (code, "8 entries, 6 with an erased name" in out) == (0, True), out


def test_a_name_erased_without_saying_so_breaks_the_chain(entries: list[AuditEntry], team: Team):
    digest = chain.digest_of(entries[2].named_salt, "n2", None)
    forge(f"UPDATE {TABLE} SET named = 'erased-1', named_salt = %s WHERE number = 3", digest)
    assert "entry 3: its name is erased, and no person.erased says so" in verified()[1]


@pytest.mark.parametrize(
    "name",
    ["guardrail", "GuardRail", "gu\u0430rdr\u0430il", "guardra1l", "guardraiI", "context-lab",
     "C\u043entextlab", "system", "\uff53ystem", "s\u00fdstem", "command_line", "policy", "l0cal",
     "erased-12ab"],
)  # fmt: skip
def test_nobody_is_called_like_an_actor_of_the_log(name: str):
    with pytest.raises(ValidationError, match="taken"):
        check_name(name)


def test_other_names_are_free():
    for name in ("mara", "systems", "\u0410\u043d\u043d\u0430", "\u6797", "jos\u00e9", "policy2"):
        assert check_name(name) == name


# Sign-ins


@pytest.mark.fault("H10")
def test_sign_ins_and_failures_are_written_down(team: Team):
    local = Team.objects.create(slug="local", name="Local")
    member(team, "mara")
    client = browser()
    assert sign_in(client, "mara", "wrong").status_code == 403
    assert sign_in(client, "lantern-ferry-42", "x").status_code == 403
    assert sign_in(client, "MARA").status_code == 302
    assert acts(team) == [
        ("login.failed", "not signed in", "mara"), ("login.used", "mara", "password"),
    ]  # fmt: skip
    assert acts(local) == [("login.failed", "not signed in", "unknown name")]
    assert set(AuditEntry.objects.values_list("ip", flat=True)) == {"127.0.0.1"}
    new = "harbour-lantern-7"
    client.post("/account/", {
        "act": "password", "oldpassword": "lantern-ferry-42", "password1": new, "password2": new,
    })  # fmt: skip
    client.post("/account/", {"act": "profile", "name": "maria", "email": ""})
    assert acts(team)[2:] == [
        ("password.changed", "mara", "mara"), ("name.changed", "mara", "maria"),
    ]  # fmt: skip


# Forwarding


def test_every_entry_is_forwarded_and_earlier_ones_on_request(entries: list[AuditEntry]):
    team = entries[0].team
    channel, _ = add_channel(team, "webhook", "siem", "https://siem.example.org/x", audit.COMMAND)
    put_rule(channel, "audit", None, 60, audit.COMMAND)
    for number in range(MOST_AN_HOUR + 1):
        audit.note(team, audit.COMMAND, "thing.made", f"m{number}")
    sent = channel.notifications.filter(event="audit", state="waiting")
    assert sent.count() == MOST_AN_HOUR + 2, "the rule's own entry too"
    assert json.loads(as_json(sent.latest("created")))["facts"]["named"] == f"m{MOST_AN_HOUR}"
    out = StringIO()
    call_command("audit", "export", "--team", "ours", "--channel", "siem", stdout=out)
    assert out.getvalue().startswith("6 entries are on their way, the last is 6.")
    for row in sent:
        assert chain.hash_of(row.facts) == row.facts["hash"]
    numbers = sorted(row.facts["number"] for row in sent)
    assert numbers == list(range(1, 1 + AuditEntry.objects.filter(team=team).count()))
    with pytest.raises(CommandError, match="no channel 'nowhere'"):
        call_command("audit", "export", "--team", "ours", "--channel", "nowhere")
