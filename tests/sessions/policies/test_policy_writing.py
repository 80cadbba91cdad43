"""Policies written in the form, without a script, and never lost."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from compaction.policies.fields import fields
from compaction.policies.policy import from_dict
from compaction.policies.yaml import LONGEST
from sessions.actions.accounts.teams import local_team
from sessions.actions.policies.policies import active_version, named_version, preset_version
from sessions.models import AuditEntry, Membership, PolicyVersion
from tests.sessions.pages import Page, page_of
from tests.sessions.policies.forms import PRESET, saved

pytestmark = pytest.mark.django_db


def form_of(document: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The data a browser submits from a form that shows this policy."""
    policy = from_dict({"name": "x", **document})
    sent: dict[str, Any] = {"step": [step.strategy for step in policy.steps]}
    for field in fields(policy):
        value = field.value
        if field.kind == "words":
            value = "\r\n".join(value)
        elif field.kind == "bool":
            value = ["false", "true"] if value else ["false"]
        sent[field.path] = field.entered(value) if field.is_share else value
    if policy.recite is not None:
        sent["recite"] = "true"
    return {"based_on": "offload-first", "seen": "0", "note": "", "do": "save", **sent, **more}


def post(browser: Client, address: str, data: dict[str, Any], status: int = 200) -> Page:
    response = browser.post(address, data)
    assert response.status_code == status, response
    return Page(response.content.decode())


def test_a_policy_is_written_in_a_form_and_saved_once(browser: Client):
    document = {**PRESET, "reserve": 9}
    answer = browser.post("/policies/new/", form_of(document, name="ours", note="nine"))
    assert (answer.status_code, answer["Location"]) == (302, "/policies/ours/1/")
    made = named_version(local_team(), "ours")
    assert made.document == {**document, "name": "ours"}
    assert (made.note, made.policy.based_on) == ("nine", "offload-first")
    assert made.author is not None
    entry = AuditEntry.objects.get(action="policy.saved")
    assert (entry.named, entry.actor_id) == ("ours@1", made.author.pk)
    again = browser.post("/policies/ours/edit/", form_of(document, seen="1"))
    assert again["Location"] == "/policies/ours/1/?kept"
    assert "says exactly that already" in page_of(browser, again["Location"]).text
    assert AuditEntry.objects.filter(action="policy.saved").count() == 1
    newer = browser.post("/policies/ours/edit/", form_of(PRESET, seen="1"))
    assert newer["Location"] == "/policies/ours/2/"
    assert active_version(local_team()).policy.name == "balanced", "nothing goes out by itself"


def test_an_empty_number_is_left_to_the_preset(browser: Client):
    sent = form_of(PRESET, name="ours", reserve="", **{"steps[0].parameters.within": ""})
    browser.post("/policies/new/", sent)
    made = named_version(local_team(), "ours").document
    assert (made["reserve"], made["steps"][0]["parameters"]["within"]) == (16_384, 4)


@pytest.mark.parametrize(
    ("path", "typed", "says"),
    [
        ("steps[2].parameters.age", "-1", "a whole number from 0 to 10,000"),
        ("steps[2].parameters.age", "many", "a whole number"),
        ("steps[2].parameters.age", "5.5", "a whole number"),
        ("steps[2].parameters.unit", "days", "one of steps, turns"),
        ("steps[3].parameters.trigger", "99", "a number from 5 to 95 %"),
        ("steps[3].parameters.trigger", "nan", "a number"),
        ("steps[3].parameters.instructions", "a\x00b", "text"),
        ("reserve", "99999999999", "a whole number"),
    ],
)
def test_an_invalid_value_is_reported_beside_its_field(
    browser: Client, path: str, typed: str, says: str
):
    page = post(browser, "/policies/new/", form_of(PRESET, name="ours", **{path: typed}), 422)
    assert page.text.count("Until you fix it") == 1
    assert f"Must be {says}" in page.text
    assert 'aria-invalid="true"' in page.html or path.endswith("unit")
    assert "Not saved: 1 problem to fix" in page.text
    assert not PolicyVersion.objects.filter(policy__name="ours").exists()


def test_all_problems_are_shown_at_once(browser: Client):
    sent = form_of(
        PRESET, name="No Name", reserve="x",
        **{"steps[0].parameters.within": "-3", "steps[1].parameters.lines": "2"},
    )  # fmt: skip
    page = post(browser, "/policies/new/", sent, 422)
    assert page.text.count("Until you fix it") == 3
    sent = form_of(PRESET, name="No Name")
    page = post(browser, "/policies/new/", sent, 422)
    assert "Must be 1 to 80 of a-z" in page.text
    assert 'value="No Name"' in page.html


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "Must be 1 to 80"),
        ("new", "not the word new"),
        ("a/b", "Must be 1 to 80"),
        ("x" * 81, "Must be 1 to 80"),
        ("recitation", "Already exists"),
        ("ours", "Already exists"),
    ],
)
def test_a_name_is_free_and_fits_into_an_address(browser: Client, name: str, says: str):
    saved()
    preset_version(local_team(), "recitation")
    page = post(browser, "/policies/new/", form_of(PRESET, name=name), 422)
    assert says in page.text
    page = post(browser, "/policies/new/", form_of(PRESET, name=name, do="check"))
    assert (says in page.text) == bool(name), "shown before it is saved, once there is a name"
    assert PolicyVersion.objects.filter(policy__name="ours").count() == 1


def test_two_who_write_at_once_do_not_overwrite_each_other(browser: Client):
    saved()
    mine = form_of({**PRESET, "reserve": 5}, seen="1")
    saved({"reserve": 7})
    page = post(browser, "/policies/ours/edit/", mine, 422)
    assert "ours@2 was saved while you were editing" in page.text
    assert 'name="seen" value="2"' in page.html
    answer = browser.post("/policies/ours/edit/", {**mine, "seen": "2"})
    assert answer["Location"] == "/policies/ours/3/"


def _steps(page: Page) -> list[str]:
    lines = [line for line in page.html.split("<") if 'name="step"' in line]
    return [line.split('value="')[1].split('"')[0] for line in lines]


@pytest.mark.parametrize(
    ("act", "strategy", "steps"),
    [
        ("up:3", "", ["dedupe", "outline", "compact", "offload"]),
        ("down:0", "", ["outline", "dedupe", "offload", "compact"]),
        ("remove:1", "", ["dedupe", "offload", "compact"]),
        ("add", "window", ["dedupe", "outline", "offload", "compact", "window"]),
        ("add", "none", ["dedupe", "outline", "offload", "compact"]),
        ("up:0", "", ["dedupe", "outline", "offload", "compact"]),
        ("down:3", "", ["dedupe", "outline", "offload", "compact"]),
        ("remove:9", "", ["dedupe", "outline", "offload", "compact"]),
        ("remove:x", "", ["dedupe", "outline", "offload", "compact"]),
        ("what", "", ["dedupe", "outline", "offload", "compact"]),
    ],
)
def test_steps_are_added_moved_and_removed_by_buttons(
    browser: Client, act: str, strategy: str, steps: list[str]
):
    sent = form_of({**PRESET, "reserve": 123}, do=act, strategy=strategy, note="kept")
    page = post(browser, "/policies/new/", sent)
    assert _steps(page) == steps
    assert 'value="123"' in page.html, "what was typed stays"
    assert 'value="kept"' in page.html
    assert not PolicyVersion.objects.filter(policy__preset=False).exists()


def test_values_move_with_their_step(browser: Client):
    sent = form_of(PRESET, do="up:2", **{"steps[2].parameters.age": "77"})
    page = post(browser, "/policies/new/", sent)
    assert 'name="steps[1].parameters.age"' in page.html
    assert 'value="77"' in page.html


def test_recitation_is_added_and_taken_away(browser: Client):
    page = post(browser, "/policies/new/", form_of(PRESET, do="recite"))
    assert 'name="recite.tokens"' in page.html
    recites = {**PRESET, "recite": {"files": 3}}
    page = post(browser, "/policies/new/", form_of(recites, do="recite"))
    assert "recite.tokens" not in page.html
    browser.post("/policies/new/", form_of(recites, name="ours"))
    assert named_version(local_team(), "ours").document["recite"]["files"] == 3


def test_remarks_come_before_anything_is_saved(browser: Client):
    sent = form_of(PRESET, do="check", **{"steps[2].parameters.batch": "1"})
    page = post(browser, "/policies/new/", sent)
    assert "cached prefix breaks at every call" in page.text
    assert "1 warning" in page.text
    page = post(browser, "/policies/new/", form_of(PRESET, name="free", do="check"))
    assert "No remarks." in page.text
    assert "to fix" not in page.text


YAML = "name: theirs\nbased_on: sliding-window\nreserve: 77\n"


def test_yaml_fills_the_form_and_saves_nothing(browser: Client):
    page = post(browser, "/policies/new/", form_of(PRESET, do="read", yaml=YAML))
    assert _steps(page) == ["window"]
    assert 'value="77"' in page.html
    assert 'value="theirs"' in page.html
    assert 'name="based_on" value="sliding-window"' in page.html
    assert "budget: 32000 # preset" in page.text
    assert not PolicyVersion.objects.filter(policy__preset=False).exists()
    file = SimpleUploadedFile("p.yaml", b"\xef\xbb\xbfreserve: 78\n")
    page = post(browser, "/policies/new/", form_of(PRESET, do="read", yaml=YAML, file=file))
    assert 'value="78"' in page.html, "a file goes before what is pasted"
    saved()
    page = post(browser, "/policies/ours/edit/", form_of(PRESET, do="read", yaml=YAML))
    assert "Edit ours" in page.title, "its name stays"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("reserve: [", "Cannot be parsed: line"),
        ("reserve: lots", "reserve: must be a whole number"),
        ("steps:\n  - strategy: offlod", "steps[0].strategy"),
        ("based_on: nothing", "based_on must be one of"),
        ("a: &x 1", "anchors"),
        ("#" * (LONGEST + 1), "longer than 64 kB"),
        ("colour: 1", "colour: unknown"),
    ],
)
def test_invalid_yaml_is_reported_and_the_form_stays(browser: Client, text: str, says: str):
    sent = form_of({**PRESET, "reserve": 123}, do="read", yaml=text)
    page = post(browser, "/policies/new/", sent)
    assert says in page.text
    assert 'value="123"' in page.html
    assert " ".join(text.split())[:40] in page.text, "to be mended where it stands"


def test_saving_does_not_lose_yaml_that_is_not_in_the_form_yet(browser: Client):
    saved()
    edit = "/policies/ours/edit/"
    for given in ({"file": SimpleUploadedFile("p.yaml", b"reserve: 78\n")}, {"yaml": YAML}):
        sent = form_of(PRESET, seen="1", note="my note", **given)
        page = post(browser, edit, sent, 422)
        assert "This YAML is not in the form yet, so nothing was saved" in page.text
        assert 'value="my note"' in page.html
    page = post(browser, edit, form_of(PRESET, do="check", yaml=YAML))
    assert "name: theirs" in page.text, "what was pasted stays while the form is checked"
    shown = page_of(browser, edit)
    [mark] = re.findall('name="yaml_shown" value="([^"]+)"', shown.markup)
    [yaml] = re.findall(r'(?s)<textarea\s+id="yaml"[^>]*>(.*?)</textarea>', shown.html)
    sent = form_of({**PRESET, "reserve": 5}, seen="1", yaml=unescape(yaml), yaml_shown=mark)
    answer = browser.post(edit, sent)
    assert answer["Location"] == "/policies/ours/2/", "the YAML that the page itself showed"


@pytest.mark.parametrize("role", ["viewer", "reviewer"])
def test_who_may_not_write_looks_only(browser: Client, role: str):
    saved()
    Membership.objects.filter(team=local_team()).update(role=role)
    for address in ("/policies/new/", "/policies/ours/edit/"):
        assert browser.get(address).status_code == 403
        assert browser.post(address, form_of(PRESET, name="more")).status_code == 403
    page = page_of(browser, "/policies/ours/1/")
    assert not {"Edit", "Propose", "Base a policy on it"} & set(page.links)
    assert "New policy" not in page_of(browser, "/policies/").links


def test_a_hostile_form_is_read_as_far_as_it_is_one(browser: Client):
    sent = {"do": "save", "name": "ours", "step": ["gone", "offload"], "based_on": "nothing",
            "seen": "9" * 30, "steps[1].parameters.age": "3", "steps[1].parameters.nothing": "1",
            "recite": "maybe"}  # fmt: skip
    browser.post("/policies/new/", sent)
    made = named_version(local_team(), "ours").document
    assert [step["strategy"] for step in made["steps"]] == ["offload"]
    assert made["steps"][0]["parameters"]["age"] == 3
    assert made["recite"] is None
    page = post(
        browser, "/policies/new/", {"do": "save", "name": "many", "step": ["window"] * 60}, 422
    )
    assert "at most 40" in page.text
