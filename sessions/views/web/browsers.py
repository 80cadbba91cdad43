"""Django's middleware for browsers, skipped by API requests with a key: those have no cookies, no
session and no form."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.auth.models import AnonymousUser
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponseBase
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.gzip import GZipMiddleware
from whitenoise.middleware import WhiteNoiseMiddleware

from sessions.access import API, by_key


class _Browsers:
    """Skips a middleware for requests with a key."""

    get_response: Any

    def __call__(self, request: HttpRequest) -> Any:
        if by_key(request):
            return self.get_response(request)
        return super().__call__(request)  # type: ignore[misc]


class Static(WhiteNoiseMiddleware):
    """Static files; nothing below the API is one."""

    def __call__(self, request: HttpRequest) -> Any:
        """A file, or what the others answer."""
        if request.path_info.startswith(API):
            return self.get_response(request)
        return super().__call__(request)


class Compressed(_Browsers, GZipMiddleware):
    """Compresses what browsers read.

    Not where a secret stands beside what others can choose, because sizes would tell it (BREACH):
    pages of accounts show new keys and invitations, and so may answers to forms. The CSRF token of
    other pages is masked differently in each, and padding of random length hides the rest.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> Any:
        """Compress the answer to a GET, unless it is a page of accounts."""
        match = request.resolver_match
        secret = match is not None and match.func.__module__.startswith("sessions.views.accounts.")
        if request.method != "GET" or secret:
            return response
        return super().process_response(request, response)


class Sessions(_Browsers, SessionMiddleware):
    """Browser sessions."""


class Common(CommonMiddleware):
    """Host check for all, and URLs and lengths for browsers."""

    def __call__(self, request: HttpRequest) -> Any:
        """Check the host; the rest for browsers only."""
        if by_key(request):
            request.get_host()  # raises DisallowedHost
            return self.get_response(request)
        return super().__call__(request)


class Csrf(_Browsers, CsrfViewMiddleware):
    """Forms of other sites."""


class People(AuthenticationMiddleware):
    """The person signed in; anonymous if a key asks."""

    def __call__(self, request: HttpRequest) -> Any:
        """Set `request.user`."""
        if by_key(request):
            request.user = AnonymousUser()
            return self.get_response(request)
        return super().__call__(request)


class Messages(_Browsers, MessageMiddleware):
    """Messages of one page to the next."""
