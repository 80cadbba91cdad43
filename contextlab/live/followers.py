"""Receivers of signals between subjects: the only way from a lower subject to a higher one."""

from __future__ import annotations

from typing import Any

from allauth.mfa import signals as mfa
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in
from django.db.models.signals import post_delete, post_save, pre_delete
from django.http import HttpRequest

from sessions.access import ip_of
from sessions.actions.accounts import audit
from sessions.actions.accounts.browsers import note_browser, sign_out_others
from sessions.actions.accounts.logins import network
from sessions.actions.accounts.preferences import signed_in
from sessions.actions.accounts.sign_ins import note_failure
from sessions.actions.dashboard.day_totals import forget_day, sums_changed
from sessions.actions.notifications import occurrences
from sessions.actions.operations.stored import take_off
from sessions.actions.reviews.reviews import want_no_more_than_can
from sessions.actions.search.indexing import forget
from sessions.models import (
    Approval,
    Assessment,
    AuditEntry,
    FactLedger,
    Review,
    ReviewItem,
    Session,
)
from sessions.models.accounts.teams import Team
from sessions.signals import blobs_go, breaks_found, budget_passed, job_failed, members_changed


def connect() -> None:
    """Connect all receivers; called once, when apps are ready."""
    user_logged_in.connect(signed_in)
    user_logged_in.connect(_signed_in_here)
    mfa.authenticator_added.connect(_factor_added)
    mfa.authenticator_removed.connect(_factor_removed)
    mfa.authenticator_reset.connect(_codes_renewed)
    mfa.authenticator_used.connect(_factor_used)
    mfa.authentication_failed.connect(_code_failed)
    members_changed.connect(_reviews_follow_members)
    for model in (Session, Assessment, FactLedger, Review, ReviewItem):
        post_save.connect(sums_changed, sender=model)
    post_delete.connect(forget_day, sender=Session)
    pre_delete.connect(forget, sender=Session)
    post_save.connect(occurrences.approval_asked, sender=Approval)
    post_save.connect(occurrences.rollout_changed, sender=AuditEntry)
    post_save.connect(occurrences.entry_added, sender=AuditEntry)
    post_save.connect(occurrences.ledger_kept, sender=FactLedger)
    budget_passed.connect(occurrences.budget_passed)
    breaks_found.connect(occurrences.breaks_found)
    job_failed.connect(occurrences.job_failed)
    blobs_go.connect(_stored_less)


def _signed_in_here(request: HttpRequest | None, user: User, **_: Any) -> None:
    if request is not None:
        note_browser(request, user, network(ip_of(request)))


def _note_factor(action: str, request: HttpRequest, user: User, kind: Authenticator) -> None:
    audit.note_for(user, audit.person(user, ip_of(request)), action, user, kind=str(kind))


def _factor_added(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    _note_factor("second_factor.added", request, user, authenticator)
    if authenticator.type == Authenticator.Type.TOTP:  # the others never gave a code
        here = request.session.session_key
        sign_out_others(user, here, audit.person(user, ip_of(request)))


def _factor_removed(
    request: HttpRequest, user: User, authenticator: Authenticator, **_: Any
) -> None:
    _note_factor("second_factor.removed", request, user, authenticator)


def _codes_renewed(
    request: HttpRequest, user: User, authenticator: Authenticator, **_: Any
) -> None:
    _note_factor("recovery_codes.renewed", request, user, authenticator)


def _factor_used(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    if authenticator.type == Authenticator.Type.RECOVERY_CODES:
        _note_factor("recovery_code.used", request, user, authenticator)


def _code_failed(request: HttpRequest, user: User, **_: Any) -> None:
    note_failure(user, ip_of(request), "code")


def _reviews_follow_members(team: Team, **_: Any) -> None:
    want_no_more_than_can(team)


def _stored_less(team: Team, shas: list[str], **_: Any) -> None:
    take_off(team.pk, shas)
