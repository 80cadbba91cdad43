"""Forms of accounts, teams and invitations: what may be typed, and what is said when it may not."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from sessions.actions.accounts import check_email, check_name
from sessions.actions.teams import LOCAL_USER
from sessions.models import Membership

NAME_CHARS, TEAM_CHARS, PASSWORD_CHARS = 150, 100, 1000
PASSWORDS = "At least 8 characters: no common password, not only digits, not like your name."
ROLES = [
    (Membership.Role.VIEWER, "viewer: looks"),
    (Membership.Role.REVIEWER, "reviewer: looks, judges summaries"),
    (Membership.Role.EDITOR, "editor: also imports, tunes, rolls out, makes keys"),
    (Membership.Role.OWNER, "owner: also invites and changes roles"),
]


def _password(label: str, autocomplete: str) -> forms.CharField:
    shown = forms.PasswordInput(attrs={"autocomplete": autocomplete})
    return forms.CharField(label=label, strip=False, max_length=PASSWORD_CHARS, widget=shown)


class Login(forms.Form):
    """A name or an e-mail, and the password."""

    name = forms.CharField(
        label="Name or e-mail",
        max_length=254,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
    )
    password = _password("Password", "current-password")


class _Twice(forms.Form):
    """A new password, typed twice; the person it is for is `person`."""

    password = _password("Password", "new-password")
    again = _password("The same again", "new-password")

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self.fields["password"].help_text = PASSWORDS

    def person(self) -> User:
        """Whose name and e-mail the password must not resemble."""
        raise NotImplementedError

    def clean(self) -> dict[str, Any]:
        """Both the same, and one that Django's validators take."""
        given = super().clean() or {}
        first, second = given.get("password"), given.get("again")
        if first and second and first != second:
            self.add_error("again", "This is not the same as above.")
        elif first:
            try:
                validate_password(first, self.person())
            except ValidationError as error:
                self.add_error("password", error)
        return given


class _Named(forms.Form):
    """Name and e-mail of an account; `own` is the account that has them already."""

    own: User | None = None

    name = forms.CharField(
        max_length=NAME_CHARS,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
        help_text="You sign in with it, and others see it.",
    )
    email = forms.EmailField(
        label="E-mail, if you like",
        required=False,
        help_text="You can sign in with it too. No mail is sent.",
    )

    def clean_name(self) -> str:
        """As it is stored."""
        return check_name(self.cleaned_data["name"], self.own)

    def clean_email(self) -> str:
        """As it is stored."""
        return check_email(self.cleaned_data["email"], self.own)


class NewAccount(_Named, _Twice):
    """Whoever makes an account at an invitation."""

    field_order = ["name", "email", "password", "again"]

    def person(self) -> User:
        """The account that would be made."""
        given = self.cleaned_data
        return User(username=given.get("name", ""), email=given.get("email", ""))


class Profile(_Named):
    """Name and e-mail of somebody who is signed in."""

    def __init__(self, own: User, data: Any = None) -> None:
        self.own = own
        now = {"name": own.username, "email": own.email}
        super().__init__(data, initial=now, auto_id="profile-%s")
        if own.username == LOCAL_USER:
            self.fields["name"].disabled = True
            self.fields["name"].help_text = "The printed address signs in whoever is called so."


class NewPassword(_Twice):
    """Another password; who has none yet is not asked for it."""

    current = _password("Current password", "current-password")
    field_order = ["current", "password", "again"]

    def __init__(self, own: User, data: Any = None) -> None:
        self.own = own
        super().__init__(data, auto_id="password-%s")
        self.fields["password"].label = "New password"
        if not own.has_usable_password():
            del self.fields["current"]

    def person(self) -> User:
        """Whose password it is."""
        return self.own


class TeamName(forms.Form):
    """What a team is called."""

    name = forms.CharField(label="Name of the team", max_length=TEAM_CHARS)


class NewInvitation(forms.Form):
    """A role to offer, and a note of whom it is for."""

    role = forms.ChoiceField(choices=ROLES, initial=Membership.Role.EDITOR)
    email = forms.EmailField(
        label="For whom",
        required=False,
        widget=forms.EmailInput(attrs={"placeholder": "e-mail, as a note"}),
    )


class NewRole(forms.Form):
    """Another role for a member."""

    role = forms.ChoiceField(choices=Membership.Role.choices)
