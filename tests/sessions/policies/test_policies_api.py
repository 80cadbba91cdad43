"""Policies over the API: list, get, and save as a document or YAML."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model

from compaction.policies.policy import from_dict, to_dict
from compaction.policies.presets import PRESETS
from compaction.policies.yaml import read
from sessions.models import AuditEntry, PolicyVersion, Session
from tests.sessions.programs import Program, assert_problem

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]


def put(program: Program, name: str, body: Any, status: int = 201) -> Any:
    answer = program.ask("PUT", f"/policies/{name}", body)
    assert answer.status_code == status, answer.content
    return answer.json()


def test_presets_can_be_named_before_anything_runs_under_them(program: Program):
    listed = program.get("/policies")["policies"]
    assert [one["name"] for one in listed] == sorted(PRESETS)
    assert [one["name"] for one in listed if one["active"]] == ["balanced"]
    assert all(one["preset"] and one["newest"] == 1 for one in listed)
    result = program.get("/policies/recitation/1")
    assert result["document"] == to_dict(PRESETS["recitation"])
    assert result["origins"]["steps[1].parameters.age"] == "preset"
    assert result["origins"]["steps[1].parameters.minimum"] == "default"
    assert [one["path"] for one in result["remarks"]] == ["steps[1].parameters.batch"]


def test_a_policy_is_saved_once_for_what_it_says(program: Program):
    body = {
        "document": {"steps": [{"strategy": "offload", "parameters": {"age": 8}}]},
        "based_on": "offload-first",
        "note": "eight",
    }
    made = put(program, "ours", body)
    assert (made["ref"], made["note"], made["based_on"]) == ("ours@1", "eight", "offload-first")
    assert made["document"]["reserve"] == 16_384, "left out: the preset's"
    assert made["origins"]["steps[0].parameters.age"] == "policy"
    assert put(program, "ours", body, 200)["ref"] == "ours@1"
    again = {**body, "document": {**body["document"], "reserve": 5}, "note": ""}
    assert put(program, "ours", again)["ref"] == "ours@2"
    assert PolicyVersion.objects.get(policy__name="ours", number=1).document["reserve"] == 16_384
    rows = AuditEntry.objects.filter(action="policy.saved").order_by("pk")
    assert [(row.named, row.via) for row in rows] == [("ours@1", "key"), ("ours@2", "key")]


def test_a_policy_tells_its_versions_and_what_each_changed(program: Program):
    put(program, "ours", {"document": {}, "based_on": "sliding-window"})
    put(program, "ours", {"document": {"reserve": 9}})
    program.ask("PUT", "/sessions/run", {"policy": "ours@1"})
    result = program.get("/policies/ours")
    assert [(one["ref"], one["sessions"]) for one in result["versions"]] == [
        ("ours@2", 0), ("ours@1", 1),
    ]  # fmt: skip
    assert result["versions"][0]["changes"] == [
        {"path": "reserve", "name": "reserve", "before": 0, "after": 9}
    ]
    assert (result["newest"], result["active"], result["sessions"]) == (2, None, 1)
    assert result["based_on"] == "sliding-window", "it stays as it was unless given"


def test_the_readable_form_comes_back_as_it_went(program: Program):
    put(program, "ours", {"document": {"reserve": 9}, "based_on": "recitation"})
    answer = program.ask("GET", "/policies/ours/1?format=yaml")
    assert answer["Content-Type"].startswith("application/yaml")
    text = answer.content.decode()
    assert put(program, "ours", {"yaml": text}, 200)["ref"] == "ours@1"
    theirs = put(program, "theirs", {"yaml": text.replace("name: ours", "name: theirs")})
    assert (theirs["ref"], theirs["based_on"]) == ("theirs@1", "recitation")
    assert from_dict(read(text).document).reserve == 9


def _step(**parameters: Any) -> dict[str, Any]:
    return {"steps": [{"strategy": "offload", "parameters": parameters}]}


@pytest.mark.parametrize(
    ("name", "body", "pointer"),
    [
        ("ours", {"document": _step(age=-1)}, "/document/steps/0/parameters/age"),
        ("ours", {"document": {"steps": [{"strategy": "x"}]}}, "/document/steps/0/strategy"),
        ("ours", {"document": {"steps": 3}}, "/document/steps"),
        ("ours", {"document": {"colour": 1}}, "/document/colour"),
        ("ours", {"document": {"recite": {"files": -1}}}, "/document/recite/files"),
        ("ours", {"document": {}, "based_on": "none"}, "/based_on"),
        ("ours", {"document": {"name": "other"}}, "/document/name"),
        ("ours", {"document": {}, "note": "x" * 301}, "/note"),
        ("ours", {"document": 3}, "/document"),
        ("ours", {}, "/document"),
        ("ours", {"document": {}, "yaml": "a: 1"}, "/document"),
        ("ours", {"yaml": "steps: [\n"}, "/yaml"),
        ("ours", {"yaml": "reserve: lots"}, "/yaml"),
        ("ours", {"yaml": "a: &x 1"}, "/yaml"),
        ("Ours", {"document": {}}, "path name"),
        ("new", {"document": {}}, "path name"),
        ("offload-first", {"document": {"reserve": 1}}, "path name"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(program: Program, name: str, body: Any, pointer: str):
    refused = assert_problem(program.ask("PUT", f"/policies/{name}", body), 422)
    assert [one["pointer"] for one in refused["errors"]] == [pointer], refused
    assert not PolicyVersion.objects.filter(policy__preset=False).exists()


def test_a_key_of_another_team_finds_nothing_and_shares_no_name(
    program: Program, stranger: Program
):
    put(program, "ours", {"document": {}})
    assert_problem(stranger.ask("GET", "/policies/ours"), 404)
    assert_problem(stranger.ask("GET", "/policies/ours/1"), 404)
    assert put(stranger, "ours", {"document": {"reserve": 3}})["ref"] == "ours@1"
    assert program.get("/policies/ours/1")["document"]["reserve"] == 0


@pytest.mark.parametrize("address", ["/policies/none", "/policies/recitation/9", "/policies/a%00b"])
def test_what_is_not_there_is_missing(program: Program, address: str):
    assert_problem(program.ask("GET", address), 404)


def test_a_session_names_the_newest_version_or_one_of_them(program: Program):
    put(program, "ours", {"document": {}})
    put(program, "ours", {"document": {"reserve": 9}})

    def under(session: str, policy: str) -> str:
        return str(program.ask("PUT", f"/sessions/{session}", {"policy": policy}).json()["policy"])

    assert under("a", "ours") == "ours@2"
    assert under("b", "ours@1") == "ours@1"
    put(program, "ours", {"document": {"reserve": 10}})
    assert under("c", "ours") == "ours@3"
    assert str(Session.objects.get(external_id="a").policy_version) == "ours@2", "as it began"
    assert under("d", "recitation@1") == "recitation@1", "of a preset too, and before any run"
    assert_problem(program.ask("PUT", "/sessions/e", {"policy": "ours@9"}), 422)


def test_the_last_author_is_named(program: Program):
    put(program, "ours", {"document": {}})
    assert program.get("/policies/ours/1")["author"] is None, "a program did"
    ada = get_user_model().objects.create_user("ada")
    PolicyVersion.objects.filter(policy__name="ours").update(author=ada)
    assert program.get("/policies/ours/1")["author"] == "ada"


def test_an_older_document_is_shown_though_it_cannot_run(program: Program):
    put(program, "ours", {"document": {}})
    strange = {"name": "ours", "steps": [{"strategy": "gone", "parameters": {"x": 1}}]}
    PolicyVersion.objects.filter(policy__name="ours").update(document=strange)
    result = program.get("/policies/ours/1")
    assert (result["document"], result["remarks"]) == (strange, [])
    assert '"gone"' in program.ask("GET", "/policies/ours/1?format=yaml").content.decode()
