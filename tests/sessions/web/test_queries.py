"""An unknown query parameter is refused with the nearest known one, by the API and by pages."""

from __future__ import annotations

from typing import Any

import pytest

from sessions.actions.accounts.teams import local_team, local_user
from sessions.api.web.queries import unknown_in
from sessions.views.web.pages import pages
from tests.sessions.answers import DOCUMENT
from tests.sessions.people import browser, shown
from tests.sessions.programs import Program, assert_problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def program(db: None) -> Program:
    return Program(local_team())


@pytest.mark.parametrize(
    ("asked", "known", "said"),
    [
        (["state"], ["state", "limit"], None),
        ([], [], None),
        (["stat"], ["state", "limit"], "?stat is not a parameter of this URL. Use ?state, or "
         "remove it."),
        (["zzz"], ["state"], "?zzz is not a parameter of this URL. Use ?state, or remove it."),
        (["x"], [], "?x is not a parameter of this URL. It has none; remove it."),
        (["a\n" * 99], [], f"?{'a' * 30} is not a parameter of this URL. It has none; remove it."),
    ],
)  # fmt: skip
def test_the_nearest_name_is_suggested(asked: list[str], known: list[str], said: str | None):
    found = unknown_in(asked, known)
    assert (found and found.sentences) == said


@pytest.mark.parametrize(
    ("address", "nearest"),
    [
        ("/rollouts?sate=done", "?state"),
        ("/sessions?limt=5", "?limit"),
        ("/reviews?outcome=failed", "?"),
        ("/sessions/x/context?step=20", "?"),
        ("/keys?team=other", "It has none;"),
    ],
)
def test_the_api_refuses_before_it_answers_something_else(
    program: Program, address: str, nearest: str
):
    found = assert_problem(program.ask("GET", address), 422)
    assert found["title"] == "Unknown parameter"
    assert nearest in found["detail"].partition(". ")[2]
    assert found["errors"][0]["pointer"] == f"?{address.partition('?')[2].partition('=')[0]}"


def test_credentials_come_first(program: Program):
    program.token = "clk_missing"
    assert program.ask("GET", "/rollouts?sate=done").status_code == 401


def test_every_operation_knows_what_its_document_says(program: Program):
    """What is known is read off the signatures, as the document is."""
    for address, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            named = {
                one["name"]: one.get("required", False)
                for one in operation["parameters"]
                if one["in"] == "query"
            }
            required = "".join(f"&{name}=0" for name, needed in named.items() if needed)
            url = f"{address.removeprefix('/api/v1')}?no_such=1{required}"
            answer = program.ask(method.upper(), url, {})
            if "{" in address and answer.status_code == 404:
                continue  # not a value of the path
            said = assert_problem(answer, 422)["detail"]
            assert "no_such" in said or not said.startswith("?"), (method, address, said)
            if "no_such" in said:
                assert ("Use ?" in said) == bool(named), (method, address)


def test_a_person_may_name_the_team(db: None):
    client = browser(local_user())
    assert client.get("/api/v1/rollouts?team=local").status_code == 200
    assert client.get("/api/v1/rollouts?taem=local").status_code == 422


def test_a_page_names_it_and_leads_on_without_it():
    page = shown(browser(local_user()).get("/rollouts/?team=local&cusor=1"), 422)
    assert "?cusor is not a parameter of this URL. Use ?cursor, or remove it." in page.text
    assert "/rollouts/?team=local" in page.links.values()


def test_every_page_has_its_parameters_and_no_others():
    client = browser(local_user())
    fixed = [one for one in pages() if "<" not in one.route and one.name != "logout"]
    for one in fixed:
        answer = client.get(f"/{one.route}?no_such=1")
        assert answer.status_code == 422, one.route
        given: Any = dict.fromkeys((*one.query, "team"), "x")
        assert client.get(f"/{one.route}", given).status_code != 422 or one.name == "dashboard"


def test_a_nul_in_a_parameter_is_refused(program: Program):
    answer = program.ask("GET", "/sessions?q=a%00b")
    assert assert_problem(answer, 422)["title"] == "Invalid parameter"
