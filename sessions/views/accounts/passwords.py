"""Forgotten passwords and confirmed email addresses: the pages that links in mails lead to."""

from __future__ import annotations

from typing import Any

from allauth.account.views import (
    ConfirmEmailView,
    PasswordResetDoneView,
    PasswordResetFromKeyDoneView,
    PasswordResetFromKeyView,
    PasswordResetView,
)
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

from sessions.access import ip_of
from sessions.actions.accounts.audit import note_for, person
from sessions.views.accounts.forms import Forgotten, ResetPassword
from sessions.views.web.pages import Page

METHODS = ["get", "head", "post"]


class Confirm(ConfirmEmailView):
    """Confirm an email address; a GET only asks, because mail servers open links."""

    template_name = "accounts/email_confirm.html"
    http_method_names = METHODS

    def respond(self, success: bool) -> HttpResponse:
        """Say how it went."""
        if success:
            owner = self.object.email_address.user
            note_for(owner, person(owner, ip_of(self.request)), "email.confirmed", owner)
        return self.render_to_response(self.get_context_data(done=success, failed=not success))


@method_decorator([login_not_required, never_cache], name="dispatch")
class Forgot(PasswordResetView):
    """Ask for a link; without a mail server, say who can make one."""

    template_name = "accounts/password_forgotten.html"
    form_class = Forgotten
    http_method_names = METHODS
    extra_context = {"mails": settings.EMAIL_HOST}

    def form_valid(self, form: Forgotten) -> HttpResponse:
        """Mail a link; the answer is the same whether an account has the address."""
        return super().form_valid(form) if settings.EMAIL_HOST else self.form_invalid(form)

    def get_context_data(self, **given: Any) -> dict[str, Any]:
        """Whether mails are sent."""
        return super().get_context_data(**given) | {"mails": bool(settings.EMAIL_HOST)}


@method_decorator([login_not_required, never_cache], name="dispatch")
class Reset(PasswordResetFromKeyView):
    """Set a new password with a link, which works once."""

    template_name = "accounts/password_reset.html"
    form_class = ResetPassword
    http_method_names = METHODS

    def dispatch(self, request: HttpRequest, *given: Any, **named: Any) -> HttpResponse:
        """Show the form, or that the link cannot be used."""
        answer = super().dispatch(request, *given, **named)
        if getattr(self, "reset_user", True) is None and answer.status_code == 200:
            answer.status_code = 404
        return answer

    def form_invalid(self, form: ResetPassword) -> HttpResponse:
        """What is wrong, beside its field."""
        return self.render_to_response(self.get_context_data(form=form), status=422)


def _said(view: Any, title: str, text: str) -> Any:
    context = {"title": title, "text": text}
    shown = view.as_view(template_name="accounts/said.html", extra_context=context)
    return login_not_required(shown)


PAGES = (
    Page(
        route="login/forgotten/",
        view=Forgot.as_view(),
        name="account_reset_password",
        public=True,
    ),
    Page(
        route="login/forgotten/sent/",
        view=_said(
            PasswordResetDoneView,
            "Look into your mail",
            "If an account has this address and a password, a link to set a new one is on its way. "
            "It works once, within a day.",
        ),
        name="account_reset_password_done",
        public=True,
    ),
    Page(
        route="login/reset/<str:uidb36>/<str:key>/",
        view=Reset.as_view(),
        name="account_reset_password_from_key",
        public=True,
    ),
    Page(
        route="login/reset/done/",
        view=_said(
            PasswordResetFromKeyDoneView,
            "Password changed",
            "Your browsers are signed out. Sign in with the new password.",
        ),
        name="account_reset_password_from_key_done",
        public=True,
    ),
    Page(
        route="login/confirm/<str:key>/",
        view=Confirm.as_view(),
        name="account_confirm_email",
        public=True,
    ),
)
