"""Between django-allauth, which speaks OpenID Connect, and our accounts.

Only imported with CONTEXTLAB_OIDC_URL (`SOCIALACCOUNT_ADAPTER`). Nothing that the provider said
about a person is stored, except what their account has: name and verified email address.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialLogin
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse

from sessions.access import ip_of
from sessions.actions.accounts.sign_ins import note_failure
from sessions.actions.accounts.sign_on import NotAdmitted, admit
from sessions.views.accounts import sign_on


class Adapter(DefaultSocialAccountAdapter):
    """What happens once the provider has answered."""

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Sign in the person, and leave allauth's own flow, which has pages that we do not."""
        raise ImmediateHttpResponse(_arrive(request, sociallogin))

    def on_authentication_error(
        self,
        request: HttpRequest,
        *_: Any,  # the provider, and the error: its text comes from outside
        **__: Any,
    ) -> None:
        """Show the sign-in page with a reason."""
        note_failure(None, ip_of(request), sign_on.HOW)
        raise ImmediateHttpResponse(sign_on.failed(request))


def _arrive(request: HttpRequest, login: SocialLogin) -> HttpResponse:
    known = login.user if login.account.pk else None
    try:
        person = _admitted(login, known, request)
    except NotAdmitted as refused:
        note_failure(known, ip_of(request), sign_on.HOW)
        return sign_on.refused(request, str(refused))
    return sign_on.enter(request, person, login.get_redirect_url(request))


@transaction.atomic
def _admit_new(login: SocialLogin, request: HttpRequest) -> User:
    person = admit(None, claims_of(login), ip_of(request))
    account = login.account
    SocialAccount.objects.create(provider=account.provider, uid=account.uid, user=person)
    return person


def _admitted(login: SocialLogin, known: User | None, request: HttpRequest) -> User:
    if known is None:
        return _admit_new(login, request)
    SocialAccount.objects.filter(pk=login.account.pk).update(extra_data={})
    # Not in a transaction: who is refused has lost access for good.
    return admit(known, claims_of(login), ip_of(request))


def claims_of(login: SocialLogin) -> Mapping[str, Any]:
    """What the provider said; the signed token counts more than its user information."""
    data = login.account.extra_data
    return {**data.get("userinfo", {}), **data.get("id_token", {})}
