"""Second factors: set up an authenticator app, use it at sign-in, recovery codes, remove it."""

from __future__ import annotations

from typing import Any

from allauth.account.views import ReauthenticateView as AskPassword
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.base.views import AuthenticateView, IndexView, ReauthenticateView
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.views import GenerateRecoveryCodesView, ViewRecoveryCodesView
from allauth.mfa.totp.views import ActivateTOTPView, DeactivateTOTPView
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

from sessions.actions.accounts.second_factor import is_required, must_set_up
from sessions.actions.web.sealed import seal, unseal
from sessions.views.web.pages import Page


class SecondFactorAdapter(DefaultMFAAdapter):
    """How allauth keeps second factors here."""

    error_messages = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": "This code is not correct, or was used already. Enter the current one.",
        "cannot_delete_authenticator": "A team of yours requires a second factor.",
    }

    def encrypt(self, text: str) -> str:
        """Encrypt a secret with the server's key: a copy of the database alone opens nothing."""
        return seal(text).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Decrypt it. Raises Unsealable if the key was replaced."""
        return unseal(encrypted_text.encode())

    def get_totp_label(self, user: User) -> str:
        """The name beside the code in the app."""
        return user.get_username()

    def can_delete_authenticator(self, authenticator: Authenticator) -> bool:
        """Not while a team requires it."""
        return not is_required(authenticator.user)


def _page(view: Any, template: str, **more: Any) -> Any:
    """A page of allauth with our template; what it refuses is 422."""

    @method_decorator(never_cache, name="dispatch")
    class Shown(view):
        template_name = f"accounts/{template}.html"
        http_method_names = more.get("methods", ["get", "head", "post"])

        def form_invalid(self, form: Any) -> HttpResponse:
            answer: HttpResponse = super().form_invalid(form)
            answer.status_code = 422
            return answer

        def get_context_data(self, **given: Any) -> dict[str, Any]:
            user = self.request.user
            found: dict[str, Any] = super().get_context_data(**given)
            return found | {"section": "account", "owes": must_set_up(user.pk)}

    return Shown.as_view()


OWED = (
    "mfa_activate_totp", "mfa_index", "mfa_view_recovery_codes", "mfa_generate_recovery_codes",
    "mfa_reauthenticate", "account_reauthenticate", "logout",
)  # fmt: skip
"""Pages for people who must set up a second factor."""

_LOOK = ["get", "head"]
PAGES = (
    Page(
        route="account/second-factor/",
        view=_page(IndexView, "second_factor", methods=_LOOK),
        name="mfa_index",
    ),
    Page(
        route="account/second-factor/app/",
        view=_page(ActivateTOTPView, "second_factor_app"),
        name="mfa_activate_totp",
        query=("next",),
        needs={"POST": None},
    ),
    Page(
        route="account/second-factor/app/remove/",
        view=_page(DeactivateTOTPView, "second_factor_remove"),
        name="mfa_deactivate_totp",
        needs={"POST": None},
    ),
    Page(
        route="account/second-factor/codes/",
        view=_page(ViewRecoveryCodesView, "recovery_codes", methods=_LOOK),
        name="mfa_view_recovery_codes",
    ),
    Page(
        route="account/second-factor/codes/new/",
        view=_page(GenerateRecoveryCodesView, "recovery_codes_new"),
        name="mfa_generate_recovery_codes",
        needs={"POST": None},
    ),
    Page(
        route="account/again/",
        view=_page(AskPassword, "again"),
        name="account_reauthenticate",
        query=("next",),
        needs={"POST": None},
    ),
    Page(
        route="account/again/code/",
        view=_page(ReauthenticateView, "again"),
        name="mfa_reauthenticate",
        query=("next",),
        needs={"POST": None},
    ),
    Page(
        route="login/code/",
        view=_page(AuthenticateView, "code"),
        name="mfa_authenticate",
        query=("next",),
        public=True,
    ),
)


def leads_there(request: HttpRequest) -> bool:
    """Whether the page that is asked for is closed until a second factor is set up."""
    match = request.resolver_match
    return match is not None and match.url_name not in OWED and must_set_up(request.user.pk)
