"""The memory pages: boards by kind, sources of notes, shares, and search."""

from __future__ import annotations

import pytest
from django.test import Client

from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.teams import local_team
from sessions.actions.memory import shares
from sessions.actions.memory.boards import board_of, put_note
from sessions.actions.memory.gathering import gather
from sessions.models import Board, Note
from tests.sessions.made import user
from tests.sessions.memory.test_boards import WORK, stored
from tests.sessions.pages import other_team, page_of, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    return signed_in()


def test_without_boards_it_says_how_they_come(client: Client) -> None:
    page = page_of(client, "/memory/")
    assert "No boards yet" in page.text and "Nothing was shared yet" in page.text
    assert "No subscriptions yet" in page.text


def test_boards_shares_and_subscriptions_are_listed(client: Client) -> None:
    made = stored(*WORK)
    gather(made)
    shares.share(made, "hand", "by_hand", summary="<b>It</b> was the cookie.")
    shares.subscribe(made, "agent", "coder", COMMAND)
    page = page_of(client, "/memory/")
    assert str(made) in page.links
    assert "<b>It" not in page.html and "on its way" in page.text
    assert "by the agent coder" in page.text


def test_entries_show_no_marks_of_markdown_and_no_tag_of_their_own(client: Client) -> None:
    made = stored(*WORK)
    row, _ = put_note(made, "knowledge", "## Port\n**8000**, not `<b>80</b>`")
    page = page_of(client, f"/memory/boards/{row.board_id}/")
    assert "<strong>8000</strong>, not <code>&lt;b&gt;80&lt;/b&gt;</code>" in page.html
    found = page_of(client, "/memory/?q=8000")
    assert "<strong>8000</strong>" in found.html
    assert 'value="8000" autocomplete="off"' in found.markup


def test_a_session_leads_to_its_board(client: Client) -> None:
    made = stored(*WORK)
    answer = client.get(f"/memory/sessions/{made.pk}/")
    board = board_of(made)
    assert answer["Location"].startswith(f"/memory/boards/{board.pk}/")
    page = page_of(client, f"/memory/boards/{board.pk}/")
    for said in ("Task", "Agents' findings", "Done", "It was the cookie."):
        assert said in page.text
    assert "in context" in page.text and "message 1" in page.links
    assert page.links["message 1"] == f"/sessions/{made.pk}/steps/1/?m=1"


def test_an_entry_is_taken_off_by_hand(client: Client) -> None:
    made = stored(*WORK)
    row, _ = put_note(made, "knowledge", "Wrong <i>fact</i>.")
    page = page_of(client, f"/memory/boards/{row.board_id}/")
    assert "Wrong <i>fact</i>." in page.text and "added by" in page.text
    answer = client.post(f"/memory/notes/{row.pk}/remove/")
    assert answer["Location"] == f"/memory/boards/{row.board_id}/"
    assert Note.objects.get(pk=row.pk).text == ""
    assert client.post(f"/memory/notes/{row.pk}/remove/").status_code == 404


def test_many_entries_of_a_kind_come_in_pages(client: Client) -> None:
    made = stored(user("Go.", key="u"))
    board = board_of(made)
    Note.objects.bulk_create(
        Note(board=board, key=str(n), kind="knowledge", text=f"fact {n}.", by="agent")
        for n in range(70)
    )
    page = page_of(client, f"/memory/boards/{board.pk}/")
    assert ">fact 69.<" in page.html and ">fact 49.<" not in page.html
    assert page.links["50 older"] == "?kind=knowledge"
    page = page_of(client, f"/memory/boards/{board.pk}/?kind=knowledge")
    assert ">fact 20.<" in page.html and ">fact 19.<" not in page.html
    page = page_of(client, f"/memory/boards/{board.pk}/{page.links['Older ›']}")
    assert "fact 0." in page.text


def test_the_search_finds_and_says_when_it_does_not(client: Client) -> None:
    gather(stored(*WORK))
    page = page_of(client, "/memory/?q=cookie")
    assert "Found" in page.text and "It was the cookie." in page.text
    page = page_of(client, "/memory/?q=zebra")
    assert "Nothing matches" in page.text


def test_another_team_s_board_is_not_there(client: Client) -> None:
    made = stored(user("Theirs.", key="u"), team=other_team())
    gather(made)
    board = board_of(made)
    assert client.get(f"/memory/boards/{board.pk}/").status_code == 404
    assert client.get(f"/memory/sessions/{made.pk}/").status_code == 404
    assert "Theirs" not in page_of(client, "/memory/?q=theirs").html.replace("“theirs”", "")
    assert not Board.objects.filter(team=local_team()).exists()
