"""Our rules within django-allauth: how often a person may try, what is audited, what is mailed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from smtplib import SMTPException
from threading import Thread
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import get_authentication_records
from allauth.account.internal.stagekit import clear_login
from allauth.core import context
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.core.internal import ratelimit
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import get_script_prefix, reverse, set_script_prefix
from django.utils.http import url_has_allowed_host_and_scheme

from sessions.access import ip_of
from sessions.actions.accounts import audit
from sessions.actions.accounts.logins import KNOWN_FOR, known_browser, network, remember
from sessions.actions.accounts.sign_ins import note_failure, note_sign_in
from sessions.actions.accounts.sign_on import signs_on

log = logging.getLogger(__name__)

APP = "allauth.account"
KNOWN_COOKIE = "contextlab_known"
OPENED_WITH = "opened_with"
"""Key in the browser session: a hash of the password with which a sign-in began."""
REFUSED = "Incorrect name or password. Check both and try again."
TOO_MANY = "Too many failed attempts. Try again in 15 minutes."
MINUTES = 15
"""In which attempts are counted (`ACCOUNT_RATE_LIMITS`)."""


class AccountAdapter(DefaultAccountAdapter):
    """How allauth signs in, changes and mails here."""

    error_messages = {
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": REFUSED,
        "too_many_login_attempts": TOO_MANY,
        "rate_limited": TOO_MANY,
        "incorrect_password": "This is not your current password. Try again.",
        "incorrect_code": "This code is not correct, or was used already. Enter the current one.",
    }

    def get_client_ip(self, request: HttpRequest) -> str:
        """The address that the proxy vouches for."""
        return network(ip_of(request))

    def is_safe_url(self, url: str | None) -> bool:
        """Whether it is a path of ours."""
        if not url or not url.startswith("/"):
            return False
        secure = self.request.is_secure()
        return url_has_allowed_host_and_scheme(url, {self.request.get_host()}, require_https=secure)

    def is_ajax(self, request: HttpRequest) -> bool:
        """Pages answer with pages."""
        return False

    def get_logout_redirect_url(self, request: HttpRequest) -> str:
        """The first page."""
        return reverse("home")

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Count the attempt before its result is known, so that many at once cannot slip through.

        Attempts from elsewhere cannot use up those of a browser in which the account has signed in
        before. Raises ValidationError.
        """
        name = str(credentials["username"])
        known = _known(request, name)
        source, name = known or self.get_client_ip(request), name.casefold()
        counted = [("login_failed", f"{name} {source}")]
        if not known:
            counted += [("login_failed_from", source), ("login_failed_for", name)]
        self._uses: list[Any] = []
        for action, key in counted:
            use = ratelimit.consume(request, app=APP, action=action, key=key)
            if use is None:
                self._give_back()  # otherwise every further attempt would extend the wait
                raise self.validation_error("too_many_login_attempts")
            self._uses.append(use)
        self._here = f"{name} {source}"

    def authenticate(self, request: HttpRequest, **credentials: Any) -> User | None:
        """The user with this name and password; none if single sign-on gave the person access.

        Unknown names take as long as known ones, since Django hashes either way.
        """
        user = super().authenticate(request, **credentials)
        if isinstance(user, User) and not signs_on(user):
            self._give_back()
            ratelimit.clear(request, app=APP, action="login_failed", key=self._here)
            return user
        named = User.objects.filter(username=credentials["username"]).first()
        note_failure(named, ip_of(request), "password")
        return None

    def _give_back(self) -> None:
        for use in self._uses:
            use.rollback()

    def pre_login(self, request: HttpRequest, user: User, **given: Any) -> HttpResponse | None:
        """Note the password, before a code is asked for."""
        request.session[OPENED_WITH] = user.get_session_auth_hash()
        answer: HttpResponse | None = super().pre_login(request, user, **given)
        return answer

    def login(self, request: HttpRequest, user: User) -> None:
        """Sign in, unless the password changed while a code was asked for."""
        if request.session.pop(OPENED_WITH, "") != user.get_session_auth_hash():
            clear_login(request)
            raise ImmediateHttpResponse(redirect("account_login"))
        super().login(request, user)

    def get_reauthentication_methods(self, user: User) -> list[dict[str, Any]]:
        """A code for people with a second factor, and only for others the password."""
        found: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        return [one for one in found if one["id"] == "mfa_reauthenticate"] or found

    def post_login(self, request: HttpRequest, user: User, **given: Any) -> HttpResponse:
        """Note the sign-in, and remember the browser."""
        answer = super().post_login(request, user, **given)
        used = [str(one["method"]) for one in get_authentication_records(request, user)]
        note_sign_in(user, ip_of(request), "password and code" if "mfa" in used else "password")
        answer.set_cookie(
            KNOWN_COOKIE,
            remember(user),
            max_age=KNOWN_FOR,
            path=reverse("account_login"),
            httponly=True,
            samesite="Lax",
            secure=request.is_secure(),
        )
        return answer

    def set_password(self, user: User, password: str) -> None:
        """Store a password, which ends all browser sessions of the user, and note it."""
        here = self.request.user.is_authenticated
        with transaction.atomic():
            super().set_password(user, password)
            actor = audit.person(user, ip_of(self.request))
            detail = {} if here else {"by": "link"}
            audit.note_for(user, actor, "password.changed", user, **detail)

    def get_reset_password_from_key_url(self, key: str) -> str:
        """The address of a link in a mail."""
        path = reverse("account_reset_password_from_key", args=key.split("-", 1))
        return self.request.build_absolute_uri(path)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send a mail without waiting for the mail server: how long that takes would tell whether
        an account has the address."""
        if not settings.EMAIL_HOST:
            return
        message = self.render_mail(template_prefix, email, {"request": self.request, **context})
        later(_send, message)


def _known(request: HttpRequest, name: str) -> str:
    if request.user.is_authenticated:  # asked for the password again
        return f"account {request.user.pk}"
    return known_browser(request.COOKIES.get(KNOWN_COOKIE, ""), name)


def later(work: Callable[..., None], *given: Any) -> None:
    """Do something that the answer must not wait for: its time would tell something."""
    # Of the thread: where the server's addresses begin.
    request, root = context.request, get_script_prefix()

    def do() -> None:
        set_script_prefix(root)
        try:
            with context.request_context(request):
                work(*given)
        finally:
            connection.close()

    Thread(target=do, daemon=True).start()


def _send(message: Any) -> None:
    try:
        message.send()
    except (OSError, SMTPException) as error:
        log.warning("mail not sent: %s", type(error).__name__)
