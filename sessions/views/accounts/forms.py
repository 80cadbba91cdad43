"""Forms for accounts, teams and invitations."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from sessions.actions.accounts.accounts import check_email, check_name
from sessions.actions.accounts.teams import LOCAL_USER
from sessions.models import Membership

NAME_CHARS, TEAM_CHARS, PASSWORD_CHARS = 150, 100, 1000
PASSWORDS = (
    "At least 8 characters: not a common password, not only digits, not similar to your name."
)
ROLES = [
    (Membership.Role.VIEWER, "viewer: looks"),
    (Membership.Role.REVIEWER, "reviewer: views, reviews summaries, leaves notes"),
    (Membership.Role.EDITOR, "editor: also imports, tunes, rolls out, creates keys"),
    (Membership.Role.OWNER, "owner: also invites and changes roles"),
]


def _password(label: str, autocomplete: str) -> forms.CharField:
    shown = forms.PasswordInput(attrs={"autocomplete": autocomplete})
    return forms.CharField(label=label, strip=False, max_length=PASSWORD_CHARS, widget=shown)


class Login(forms.Form):
    """A name or email address, and the password."""

    name = forms.CharField(
        label="Name or email",
        max_length=254,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
    )
    password = _password("Password", "current-password")


class _Twice(forms.Form):
    """A new password, typed twice, for `person`."""

    password = _password("Password", "new-password")
    again = _password("Repeat password", "new-password")

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self.fields["password"].help_text = PASSWORDS

    def person(self) -> User:
        """The user whose name and email the password must not resemble."""
        raise NotImplementedError

    def clean(self) -> dict[str, Any]:
        """Check that both passwords match and pass Django's validators."""
        given = super().clean() or {}
        first, second = given.get("password"), given.get("again")
        if first and second and first != second:
            self.add_error("again", "The passwords do not match.")
        elif first:
            try:
                validate_password(first, self.person())
            except ValidationError as error:
                self.add_error("password", error)
        return given


class _Named(forms.Form):
    """Name and email of an account; `own` is the account being edited, if any."""

    own: User | None = None

    name = forms.CharField(
        max_length=NAME_CHARS,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
        help_text="Used to sign in, and visible to others.",
    )
    email = forms.EmailField(
        label="Email (optional)",
        required=False,
        help_text="Can be used to sign in, too. No mail is sent.",
    )

    def clean_name(self) -> str:
        """Validate and normalize the name."""
        return check_name(self.cleaned_data["name"], self.own)

    def clean_email(self) -> str:
        """Validate and normalize the email address."""
        return check_email(self.cleaned_data["email"], self.own)


class NewAccount(_Named, _Twice):
    """A new account, created from an invitation."""

    field_order = ["name", "email", "password", "again"]

    def person(self) -> User:
        """The account that would be created."""
        given = self.cleaned_data
        return User(username=given.get("name", ""), email=given.get("email", ""))


class Profile(_Named):
    """Name and email of a signed-in user."""

    def __init__(self, own: User, data: Any = None) -> None:
        self.own = own
        now = {"name": own.username, "email": own.email}
        super().__init__(data, initial=now, auto_id="profile-%s")
        if own.username == LOCAL_USER:
            self.fields["name"].disabled = True
            self.fields[
                "name"
            ].help_text = "The printed sign-in URL signs in the user with this name."


class NewPassword(_Twice):
    """A new password; asks for the current one if there is one."""

    current = _password("Current password", "current-password")
    field_order = ["current", "password", "again"]

    def __init__(self, own: User, data: Any = None) -> None:
        self.own = own
        super().__init__(data, auto_id="password-%s")
        self.fields["password"].label = "New password"
        if not own.has_usable_password():
            del self.fields["current"]

    def person(self) -> User:
        """The user whose password is changed."""
        return self.own


class TeamName(forms.Form):
    """The name of a team."""

    name = forms.CharField(label="Team name", max_length=TEAM_CHARS)


class NewInvitation(forms.Form):
    """The role to offer, and the intended recipient."""

    role = forms.ChoiceField(choices=ROLES, initial=Membership.Role.EDITOR)
    email = forms.EmailField(
        label="Email",
        required=False,
        widget=forms.EmailInput(attrs={"placeholder": "as a note; no mail is sent"}),
    )


class NewRole(forms.Form):
    """A new role for a member."""

    role = forms.ChoiceField(choices=Membership.Role.choices)
