"""API keys: shown once, stored as a hash, revoked immediately."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from sessions.actions.accounts.keys import check_key, create_key, revoke_key
from sessions.actions.accounts.teams import LOCAL_TEAM, local_team, local_user, team_called
from sessions.models import Key, Membership, Team

pytestmark = pytest.mark.django_db


def test_a_token_leads_to_its_key_and_team():
    key, token = create_key(local_team(), "ci")
    found = check_key(token)
    assert found == key
    assert found is not None and found.team == local_team()
    assert token.startswith(f"clk_{key.prefix}")
    assert len(token) == 4 + 8 + 32 + 6


@pytest.mark.fault("H7")
def test_nothing_of_the_secret_is_stored():
    key, token = create_key(local_team())
    secret = token[12:]
    stored = [str(getattr(key, field.attname)) for field in Key._meta.concrete_fields]
    assert not [value for value in stored if secret[:12] in value]


@pytest.mark.fault("H8")
@given(place=st.integers(0, 49), letter=st.characters(min_codepoint=33, max_codepoint=126))
def test_one_wrong_letter_is_no_key_and_asks_no_database(place: int, letter: str):
    _, token = create_key(local_team())
    changed = token[:place] + letter + token[place + 1 :]
    with CaptureQueriesContext(connection) as asked:
        found = check_key(changed)
    assert (found is not None) == (changed == token)
    assert bool(asked.captured_queries) == (changed == token), "the checksum tells"


def test_a_right_checksum_alone_opens_nothing():
    _, token = create_key(local_team())
    Key.objects.all().delete()
    assert check_key(token) is None


def test_the_secret_counts_and_not_only_the_prefix():
    first, token = create_key(local_team())
    _, other = create_key(local_team())
    Key.objects.filter(pk=first.pk).update(digest="0" * 64)
    assert check_key(token) is None
    assert check_key(other) is not None


def test_a_revoked_key_ends_at_once_and_stays_as_a_row():
    key, token = create_key(local_team())
    assert revoke_key(key)
    assert check_key(token) is None
    assert not revoke_key(key)
    assert Key.objects.get().revoked is not None


def test_use_is_noted_once_a_minute():
    key, token = create_key(local_team())
    assert check_key(token)
    with CaptureQueriesContext(connection) as asked:
        assert check_key(token)
    assert len(asked.captured_queries) == 1, "one look, no write"
    long_ago = timezone.now() - timedelta(minutes=5)
    Key.objects.filter(pk=key.pk).update(used=long_ago)
    assert check_key(token)
    assert Key.objects.get().used > long_ago + timedelta(minutes=4)


@pytest.mark.parametrize(
    ("scopes", "granted"), [(["read"], ["read"]), (["write"], ["read", "write"])]
)
def test_who_writes_also_reads(scopes: list[str], granted: list[str]):
    assert create_key(local_team(), scopes=scopes)[0].scopes == granted


@pytest.mark.parametrize("scopes", [[], ["admin"]])
def test_there_are_no_other_scopes(scopes: list[str]):
    with pytest.raises(ValueError, match="scope"):
        create_key(local_team(), scopes=scopes)


def test_a_team_is_made_once_and_its_maker_owns_it():
    team, made = team_called("My Agents")
    assert (team.slug, made) == ("my-agents", True)
    assert Membership.objects.get(team=team).user == local_user()
    assert team_called("my-agents") == (team, False)
    assert team_called(LOCAL_TEAM) == (local_team(), False)


def test_a_team_of_others_is_not_joined_by_naming_it():
    Team.objects.create(slug="others", name="Others")
    team, made = team_called("others")
    assert not made
    assert not Membership.objects.filter(team=team).exists()


def answer(*words: str) -> str:
    out = StringIO()
    call_command("token", *words, stdout=out)
    return out.getvalue()


def test_the_command_makes_lists_and_revokes():
    made = json.loads(answer("create", "--team", "Night Shift", "--name", "cron", "--json"))
    assert made == {
        "token": made["token"],
        "prefix": made["token"][4:12],
        "team": "night-shift",
        "scopes": ["read", "write"],
        "owner": None,
        "expires": None,
    }
    assert check_key(made["token"])
    (listed,) = json.loads(answer("list", "--json"))
    assert (listed["prefix"], listed["name"]) == (made["prefix"], "cron")
    assert made["token"] not in answer("list")
    assert "was revoked" in answer("revoke", made["prefix"])
    assert "was already revoked" in answer("revoke", made["token"])
    assert check_key(made["token"]) is None


def test_the_command_says_what_is_wrong():
    with pytest.raises(CommandError, match="no key with that prefix") as error:
        answer("revoke", "nothing0")
    assert error.value.returncode == 2
    with pytest.raises(CommandError, match="letter"):
        answer("create", "--team", "!!!")
    assert "contextlab token create" in answer("list")
