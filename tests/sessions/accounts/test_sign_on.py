"""Single sign-on: what a provider's claims give, change and end; and the settings for that.

The sign-in itself, at a provider: tests/browser/accounts/test_single_sign_on.py.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from contextlab.accounts.sign_on_settings import SignOn, sign_on
from sessions.actions.accounts import audit
from sessions.actions.accounts.keys import check_key, create_key
from sessions.actions.accounts.sign_on import NotAdmitted, admit, roles_of
from sessions.models import AuditEntry, Membership, Team
from tests.sessions.people import PASSWORD, acts, browser, member, person, shown, sign_in

pytestmark = [pytest.mark.store, pytest.mark.django_db]
VARIABLES = {
    "URL": "https://id.example.org",
    "CLIENT_ID": "contextlab",
    "CLIENT_SECRET": "s",
    "DOMAINS": "Example.org=research",
    "GROUPS": "lab admins=ops:owner, lab=ops:editor,cn=x,dc=org=research:reviewer",
}


def configured(monkeypatch: pytest.MonkeyPatch, **changed: str) -> SignOn | None:
    for name, value in {**VARIABLES, **changed}.items():
        monkeypatch.setenv(f"CONTEXTLAB_OIDC_{name}", value)
    return sign_on()


@pytest.fixture(autouse=True)
def given(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.SIGN_ON = configured(monkeypatch, GROUPS="lab admins=ops:owner, lab=ops:editor")


def roles(user: User) -> dict[str, str]:
    return dict(Membership.objects.filter(user=user).values_list("team__slug", "role"))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"URL": "http://id.example.org"}, "must begin with https"),
        ({"CLIENT_SECRET": ""}, "needs CONTEXTLAB_OIDC_CLIENT_ID and"),
        ({"DOMAINS": "", "GROUPS": ""}, "without one, no one may sign in"),
        ({"GROUPS": "lab=ops:boss"}, "with one of the roles viewer, reviewer, editor, owner"),
        ({"GROUPS": "lab"}, "lists entries such as lab=ops:editor"),
    ],
)
def test_a_wrong_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], said: str
):
    with pytest.raises(ValueError, match=said):
        configured(monkeypatch, **changed)


def test_without_a_provider_nothing_is_configured(monkeypatch: pytest.MonkeyPatch):
    assert configured(monkeypatch, URL="") is None
    assert configured(monkeypatch, URL="http://localhost:9400") is not None


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({}, {}),
        ({"groups": None}, {}),
        ({"groups": ["LAB", 7, "other"]}, {}),
        ({"groups": "lab"}, {"ops": "editor"}),
        ({"groups": ["lab admins", "lab"]}, {"ops": "owner"}),
        ({"groups": ["lab", "lab admins"]}, {"ops": "owner"}),
        ({"email": "a@example.org"}, {}),
        ({"email": "a@example.org", "email_verified": False}, {}),
        ({"email": "a@EXAMPLE.ORG", "email_verified": True}, {"research": "viewer"}),
        ({"email": "a@x.example.org", "email_verified": True}, {}),
        ({"email": "example.org", "email_verified": True}, {}),
    ],
)
def test_roles_by_group_and_by_verified_domain(claims: dict[str, Any], expected: dict[str, str]):
    assert roles_of(claims) == expected


def test_an_account_is_made_changed_and_ended(settings: Any):
    claims = {"preferred_username": "Mara Okonkwo", "groups": ["lab"]}
    mara = admit(None, claims, "10.0.0.1")
    assert (mara.username, mara.has_usable_password()) == ("Mara-Okonkwo", False)
    assert roles(mara) == {"ops": "editor"}
    team = Team.objects.get(slug="ops")
    _, token = create_key(team, "ci", actor=audit.person(mara))
    admit(mara, {"groups": ["lab admins"]}, "10.0.0.1")
    assert roles(mara) == {"ops": "owner"}
    member(team, "jo", "owner")
    open_page = browser(mara)
    with pytest.raises(NotAdmitted, match="in no group or domain with access"):
        admit(mara, {"groups": []}, "10.0.0.1")
    assert (roles(mara), check_key(token)) == ({}, None)
    settings.SIGN_ON = None  # its pages are not there
    assert open_page.get("/account/").status_code == 403
    assert [act for act, _, _ in acts(team)] == [
        "team.made", "member.joined", "key.made", "role.changed", "member.removed", "key.revoked",
    ]  # fmt: skip


@pytest.mark.parametrize("groups", [[], ["lab"]])
def test_the_last_owner_stays_one(groups: list[str]):
    mara = admit(None, {"preferred_username": "mara", "groups": ["lab admins"]}, "")
    team = Team.objects.get(slug="ops")
    vouched = team.memberships.get(user=mara).vouched
    admit(mara, {"groups": groups}, "")
    assert roles(mara) == {"ops": "owner"}
    kept = AuditEntry.objects.get(team=team, action="owner.kept")
    assert (kept.actor, kept.detail["role"]) == ("mara", "editor" if groups else "none")
    assert (team.memberships.get(user=mara).vouched == vouched) == (not groups)
    member(team, "jo", "owner")
    if groups:
        admit(mara, {"groups": groups}, "")
    else:
        with pytest.raises(NotAdmitted):
            admit(mara, {"groups": groups}, "")
    assert roles(mara) == ({"ops": "editor"} if groups else {})


def test_keys_of_a_person_who_never_returns_lapse(settings: Any, monkeypatch: pytest.MonkeyPatch):
    settings.SIGN_ON_KEY_DAYS = 7
    claims = {"preferred_username": "mara", "groups": ["lab"]}
    mara = admit(None, claims, "")
    team = Team.objects.get(slug="ops")
    jo = member(team, "jo")
    _, hers = create_key(team, "ci", actor=audit.person(mara))
    _, his = create_key(team, "cron", actor=audit.person(jo))
    signed_in = timezone.now()
    works = {}
    for days in (6.9, 7.1):
        monkeypatch.setattr(timezone, "now", lambda days=days: signed_in + timedelta(days=days))
        works[days] = (bool(check_key(hers)), bool(check_key(his)))
    assert works == {6.9: (True, True), 7.1: (False, True)}
    page = shown(browser(jo).get("/settings/keys/?team=ops"))
    assert "its owner has not signed in for 7 days" in page.text
    admit(mara, claims, "")
    assert check_key(hers), "with the next sign-in it works again"
    settings.SIGN_ON_KEY_DAYS = 0
    monkeypatch.setattr(timezone, "now", lambda: signed_in + timedelta(days=999))
    assert check_key(hers)


def test_who_may_not_sign_in_gets_no_account():
    with pytest.raises(NotAdmitted):
        admit(None, {"preferred_username": "eve", "email": "e@example.com"}, "")
    assert not User.objects.filter(username="eve").exists()


def test_an_invited_membership_is_not_touched():
    team = Team.objects.create(slug="ops", name="Ops")
    mara = member(team, "mara", "reviewer")
    assert admit(mara, {"groups": ["lab admins"]}, "") == mara
    assert admit(mara, {"groups": []}, "") == mara
    assert roles(mara) == {"ops": "reviewer"}


def test_a_disabled_account_stays_out():
    mara = person("mara")
    User.objects.filter(pk=mara.pk).update(is_active=False)
    mara.refresh_from_db()
    with pytest.raises(NotAdmitted, match="disabled"):
        admit(mara, {"groups": ["lab"]}, "")
    assert roles(mara) == {}


def test_another_account_with_the_same_address_is_not_taken_over():
    old = person("jo", "jo@example.org")
    claims = {"preferred_username": "jo", "email": "jo@example.org", "email_verified": True}
    new = admit(None, claims, "")
    assert new.pk != old.pk
    assert (new.username.startswith("jo-"), new.email) == (True, "")


def test_no_password_opens_what_single_sign_on_gave(settings: Any):
    mara = admit(None, {"preferred_username": "mara", "groups": ["lab"]}, "")
    settings.SIGN_ON = None  # its pages are not there
    client = browser(mara)
    client.raise_request_exception = False
    asked = {"act": "password", "password1": PASSWORD, "password2": PASSWORD}
    assert client.post("/account/", asked).status_code == 400
    mara.set_password(PASSWORD)
    mara.save()
    assert sign_in(browser(), "mara").status_code == 403
    Membership.objects.update(by_sign_on=False)
    assert sign_in(browser(), "mara").status_code == 302
