"""Rules of a team: by page, API and command; where they mask; dry runs; what is audited."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from compaction.proposals.plan import Span
from compaction.redaction.team_rules import MOST_RULES, BadRule, TeamRule
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.jobs.attempts import attempt
from sessions.actions.jobs.jobs import claim
from sessions.actions.live import artefacts
from sessions.actions.masking import dry_runs, rules
from sessions.actions.memory import boards, shares
from sessions.models import AuditEntry, Job, MaskingRule, Session
from sessions.models.masking.masking import rules_of
from tests.sessions.live.test_artefacts import span
from tests.sessions.pages import Page
from tests.sessions.programs import Program, assert_problem
from tests.sessions.web.world import browser_of

pytestmark = [pytest.mark.django_db, pytest.mark.store, pytest.mark.usefixtures("jobs_wait")]

RULE = TeamRule("CUSTOMER", "words", "Mara Olsen", "[CUSTOMER]")
PATTERN = {"name": "ORDER", "kind": "pattern", "text": r"ord-\d+"}
SAID = {"messages": [{"role": "user", "content": "Mara Olsen has ord-12 and ord-13."}]}


@pytest.fixture
def owner(program: Program) -> Program:
    return Program(program.team, ("read", "write", "erase"))


@pytest.fixture
def session(program: Program) -> Session:
    program.post("/sessions/run/messages", SAID)
    return Session.objects.get()


def actions() -> list[str]:
    entries = AuditEntry.objects.filter(action__startswith="masking.").order_by("pk")
    return [one.action.removeprefix("masking.") for one in entries]


def test_a_rule_is_added_changed_and_removed_by_the_api(owner: Program):
    made = owner.post("/masking-rules", PATTERN)
    assert made["replacement"] == "[ORDER]"
    assert_problem(owner.ask("POST", "/masking-rules", PATTERN), 422)
    bad = assert_problem(owner.ask("POST", "/masking-rules", {**PATTERN, "text": "(a"}), 422)
    assert bad["errors"][0]["pointer"] == "/text"
    address = f"/masking-rules/{made['id']}"
    changed = owner.ask("PUT", address, {**PATTERN, "replacement": "[O]"}).json()
    assert changed["id"] != made["id"]
    assert owner.ask("DELETE", address).status_code == 404, "it is no more"
    assert [one["replacement"] for one in owner.get("/masking")["rules"]] == ["[O]"]
    assert owner.ask("DELETE", f"/masking-rules/{changed['id']}").status_code == 200
    empty = {"rules": [], "incoming": False, "show_masked": False, "masked": []}
    assert owner.get("/masking") == empty
    assert actions() == ["added", "changed", "removed"]
    assert "ord-" not in str(list(AuditEntry.objects.values())), "patterns may quote content"


def test_a_key_without_the_scope_may_not(program: Program):
    assert_problem(program.ask("GET", "/masking"), 403)
    assert_problem(program.ask("POST", "/masking-rules", PATTERN), 403)


def test_a_sample_is_masked_and_not_stored(owner: Program):
    said = owner.post("/masking/samples", {**PATTERN, "sample": "ord-1, ord-2"})
    assert said == {"masked": "[ORDER], [ORDER]", "matches": 2}
    assert not MaskingRule.objects.exists()


def test_names_of_our_own_kinds_and_too_many_rules_are_refused(program: Program):
    with pytest.raises(BadRule, match="without a rule"):
        rules.add(program.team, TeamRule("EMAIL", "words", "x", "[E]"), COMMAND)
    for number in range(MOST_RULES):
        rules.add(program.team, TeamRule(f"RULE_{number}", "words", "x", "[R]"), COMMAND)
    with pytest.raises(BadRule, match="at most"):
        rules.add(program.team, RULE, COMMAND)


def test_rules_mask_exports_boards_and_shares(program: Program, session: Session):
    assert "Mara" in program.ask("GET", "/sessions/run/export").getvalue().decode()
    rules.add(program.team, RULE, COMMAND)
    export = program.ask("GET", "/sessions/run/export").getvalue().decode()
    assert "Mara" not in export and "[CUSTOMER] has" in export
    note, _ = boards.put_note(session, "knowledge", "Mara Olsen pays")
    assert note.text == "[CUSTOMER] pays"
    row, _ = shares.share(session, "k", "request", summary="for Mara Olsen")
    assert (row.summary, row.masked) == ("for [CUSTOMER]", {"CUSTOMER": 1})


def test_rules_mask_what_summarizers_get(
    program: Program, session: Session, monkeypatch: pytest.MonkeyPatch
):
    rules.add(program.team, RULE, COMMAND)
    seen: list[Span] = []

    class Keeping:
        name = "keeping"

        def summarize(self, wanted: Span, count: Any) -> Any:
            seen.append(wanted)
            return artefacts.Extractive().summarize(wanted, count)

    monkeypatch.setattr(artefacts, "chosen", Keeping)
    made = artefacts.make(session, span("Mara Olsen called.", "I call back."))
    text = " ".join(block.text for block in (*seen[0].blocks, *seen[0].originals))
    assert "Mara" not in text and "[CUSTOMER]" in text
    assert made.masked["CUSTOMER"] >= 1


def test_rules_of_another_team_do_not_count(program: Program, stranger: Program):
    rules.add(stranger.team, RULE, COMMAND)
    assert rules_of(program.team.pk) == ()


@pytest.mark.usefixtures("session")
def test_a_dry_run_counts_and_changes_nothing(owner: Program):
    rules.add(owner.team, RULE, COMMAND)
    owner.post("/masking-rules", PATTERN)
    assert owner.get("/masking/dry-runs")["job"] is None
    asked = owner.post("/masking/dry-runs", None)
    claimed = claim(Job.objects.get(pk=asked["job"]).pk)
    assert claimed is not None and claimed.token is not None
    assert attempt(claimed.pk, claimed.token)
    found = owner.get("/masking/dry-runs")
    pk = str(Session.objects.get().pk)
    assert (found["state"], found["sessions"], found["more"]) == ("done", 1, False)
    assert found["rules"] == {
        "CUSTOMER": {"matches": 1, "sessions": 1, "named": [pk]},
        "ORDER": {"matches": 2, "sessions": 1, "named": [pk]},
    }
    assert "Mara" in owner.ask("GET", "/sessions/run/export?masked=false").getvalue().decode()
    page = browser_of(owner.team).get("/settings/masking/").content.decode()
    assert f"/sessions/{pk}/" in page and "Mara" not in page
    assert dry_runs.newest(owner.team) is not None


def test_the_page_tests_saves_changes_and_removes_a_rule(program: Program):
    browser = browser_of(program.team)
    fields = {"name": "ORDER", "kind": "pattern", "text": r"ord-\d+", "replacement": ""}
    tested = browser.post(
        "/settings/masking/rules/", {**fields, "sample": "ord-1 <b>", "test": "yes"}
    )
    page = Page(tested.content.decode())
    assert "1 match in the sample" in page.text and "[ORDER] <b>" in page.text
    assert not MaskingRule.objects.exists()
    assert browser.post("/settings/masking/rules/", fields).status_code == 302
    bad = browser.post("/settings/masking/rules/", {**fields, "name": "A_B", "text": "a*"})
    assert (bad.status_code, "empty text" in bad.content.decode()) == (422, True)
    row = MaskingRule.objects.get()
    form = browser.get("/settings/masking/?change=ORDER").content.decode()
    assert str(row.pk) in form
    changed = {**fields, "replacement": "[O]", "changes": str(row.pk)}
    assert browser.post("/settings/masking/rules/", changed).status_code == 302
    row = MaskingRule.objects.get(removed=None)
    assert row.replacement == "[O]"
    browser.post("/settings/masking/switch/", {"what": "incoming", "on": "yes"})
    assert rules.masks_incoming(program.team)
    browser.post("/settings/masking/switch/", {"what": "incoming", "on": "no"})
    assert not rules.masks_incoming(program.team)
    browser.post(f"/settings/masking/rules/{row.pk}/remove/")
    assert not MaskingRule.objects.filter(removed=None).exists()
    assert actions() == ["added", "changed", "incoming", "incoming", "removed"]


def test_others_do_not_see_the_page(program: Program):
    assert browser_of(program.team, "editor").get("/settings/masking/").status_code == 403


def test_the_command_does_the_same(
    program: Program, session: Session, monkeypatch: pytest.MonkeyPatch
):
    def said(*given: str, text: str = "") -> str:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        out = io.StringIO()
        call_command("masking", *given, "--team", program.team.slug, stdout=out)
        return out.getvalue()

    assert said("add", "ORDER", "--kind", "pattern", text="ord-\\d+\n") == "Added.\n"
    assert said("change", "ORDER", "--replacement", "[O]", text="ord\n") == "Changed.\n"
    assert said("incoming", "on") == "What comes in is masked before it is stored.\n"
    assert said("incoming", "on").endswith("as before.\n")
    program.post("/sessions/run/messages", {"messages": [{"role": "user", "content": "an ord"}]})
    assert said("masked", "run") == "ORDER: 1\n"
    assert said("show", "masked") == "Content is shown masked.\n"
    assert said("show", "masked") == "Content is shown masked, as before.\n"
    shown = "Incoming: masked\nShown: masked\n"
    listed = f"{shown}ORDER  words  [O]\nmasked ORDER: 1 in 1 sessions\n"
    assert said("list") == listed
    assert said("dry-run", "--begin").startswith("queued")
    assert said("remove", "ORDER") == "Removed.\n"
    with pytest.raises(CommandError, match="no rule"):
        said("remove", "ORDER")
    with pytest.raises(CommandError, match="valid RE2"):
        said("add", "ORDER", "--kind", "pattern", text="(")
    assert json.loads(json.dumps(program.get("/sessions/run/masked"))) == {"masked": {"ORDER": 1}}
