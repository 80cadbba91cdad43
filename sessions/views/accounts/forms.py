"""Forms for accounts, teams and invitations."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.forms import (
    ChangePasswordForm,
    LoginForm,
    ResetPasswordForm,
    ResetPasswordKeyForm,
    default_token_generator,
)
from allauth.account.internal.flows.password_reset import request_password_reset
from allauth.account.internal.userkit import filter_users_by_email
from allauth.mfa.utils import is_mfa_enabled
from django import forms
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from sessions.actions.accounts.accounts import check_email, check_name
from sessions.actions.accounts.logins import username_of
from sessions.actions.accounts.sign_on import signs_on
from sessions.actions.accounts.teams import LOCAL_USER
from sessions.models import Membership
from sessions.views.accounts.adapter import later
from sessions.views.accounts.codes import CodeAgain

NAME_CHARS, TEAM_CHARS, PASSWORD_CHARS, EMAIL_CHARS = 150, 100, 1000, 254
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


class Login(LoginForm):
    """A name or email address, and the password."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self.fields["login"].label = "Name or email"
        self.fields["login"].max_length = EMAIL_CHARS
        self.fields["login"].widget.attrs = {"autocomplete": "username", "autocapitalize": "none"}
        _plain(self.fields["password"], "Password")

    def user_credentials(self) -> dict[str, str]:
        """The account's name instead of its email address: an address takes as many hashes as a
        name, and an unknown one as many as a known one."""
        given = self.cleaned_data
        return {"username": username_of(given["login"]), "password": given["password"]}


def _plain(field: Any, label: str, help_text: str = "") -> None:
    field.label, field.help_text, field.max_length = label, help_text, PASSWORD_CHARS
    field.widget.attrs.pop("placeholder", None)


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
        help_text="To sign in, and to reset a forgotten password.",
    )

    def clean_name(self) -> str:
        """Validate and normalize the name."""
        return check_name(self.cleaned_data["name"], self.own)

    def clean_email(self) -> str:
        """Validate and normalize the email address."""
        return check_email(self.cleaned_data["email"], self.own)


class NewAccount(_Named):
    """A new account, created from an invitation."""

    password = _password("Password", "new-password")
    again = _password("Repeat password", "new-password")
    field_order = ["name", "email", "password", "again"]

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self.fields["password"].help_text = PASSWORDS

    def clean(self) -> dict[str, Any]:
        """Check that both passwords match and pass Django's validators."""
        given = super().clean() or {}
        first, second = given.get("password"), given.get("again")
        if first and second and first != second:
            self.add_error("again", "The passwords do not match.")
        elif first:
            try:
                validate_password(
                    first, User(username=given.get("name", ""), email=given.get("email", ""))
                )
            except ValidationError as error:
                self.add_error("password", error)
        return given


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


class NewPassword(ChangePasswordForm):
    """A new password; asks for the current one and for a code, if there are."""

    def __init__(self, user: User, data: Any = None) -> None:
        super().__init__(user=user, data=data, auto_id="password-%s")
        _name_new(self.fields)
        _plain(self.fields["oldpassword"], "Current password")
        if not user.has_usable_password():
            del self.fields["oldpassword"]
        self.again = CodeAgain(user=user, data=data) if is_mfa_enabled(user) else None
        if self.again:
            self.fields["code"] = self.again.fields["code"]
            self.fields["code"].widget.attrs.pop("placeholder", None)

    def clean_oldpassword(self) -> str:
        """Check the current password, as often as at sign-in."""
        given: str = self.cleaned_data["oldpassword"]
        adapter = get_adapter()
        if not adapter.reauthenticate(self.user, given):
            raise adapter.validation_error("incorrect_password")
        return given

    def clean(self) -> dict[str, Any]:
        """Check the code once all else is right: it works only once."""
        given: dict[str, Any] = super().clean()
        if self.again and not self.errors:
            if self.again.is_valid():
                self.again.save()
            else:
                self.add_error("code", self.again.errors["code"])
        return given


class ResetPassword(ResetPasswordKeyForm):
    """A new password, set with a link."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        _name_new(self.fields)


class Forgotten(ResetPasswordForm):
    """The email address of an account whose password is forgotten."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self.fields["email"].widget.attrs.pop("placeholder", None)

    def clean_email(self) -> str:
        """The address, without a look at accounts: that would take time for known ones."""
        return str(self.cleaned_data["email"])

    def save(self, request: HttpRequest, **given: Any) -> str:
        """Mail a link to the account with this address, if there is one."""
        email = self.cleaned_data["email"]
        later(_mail_link, request, email)
        return str(email)


def _mail_link(request: HttpRequest, email: str) -> None:
    found = filter_users_by_email(email, is_active=True, prefer_verified=True, for_login=True)
    # Others sign in at a provider, or with the printed address.
    people = [one for one in found if one.has_usable_password() and not signs_on(one)]
    request_password_reset(request, email, people, default_token_generator)


def _name_new(fields: dict[str, forms.Field]) -> None:
    _plain(fields["password1"], "New password", PASSWORDS)
    _plain(fields["password2"], "Repeat password")


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
