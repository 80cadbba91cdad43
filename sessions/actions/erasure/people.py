"""What an erasure deletes besides sessions: a task's board, a member's data, all of a team."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.contrib.auth.models import User
from django.db import models, transaction
from django.db.models import Q, QuerySet

from sessions.actions.accounts import audit
from sessions.actions.accounts.browsers import end_sessions
from sessions.actions.accounts.members import remove
from sessions.actions.accounts.pseudonyms import erase_from_log
from sessions.actions.erasure.rows import name_of
from sessions.models import (
    Answer,
    Approval,
    AuditEntry,
    Blob,
    Board,
    Budget,
    ErasedSession,
    Erasure,
    ImportFile,
    Invitation,
    Job,
    Key,
    Membership,
    Note,
    NotificationChannel,
    Policy,
    PolicyVersion,
    Review,
    ReviewItem,
    Rollout,
    SavedSearch,
    Simulation,
    StepNote,
    Team,
    Tuning,
    Use,
)
from sessions.models.record import objects

KEPT: tuple[type[models.Model], ...] = (AuditEntry, Blob, Erasure, ErasedSession, Membership)
"""What stays of an erased team for now: the append-only log, receipts, who asked for it, and
content, which goes last."""

BY: dict[type[models.Model], tuple[str, str]] = {
    Simulation: ("author", "team"),
    Tuning: ("author", "team"),
    PolicyVersion: ("author", "policy__team"),
    Budget: ("made_by", "team"),
    ReviewItem: ("added_by", "team"),
    NotificationChannel: ("made_by", "team"),
    Approval: ("decided_by", "session__team"),
}
"""Rows that stay when a member's data is erased: the column that names the person, cleared, and
the way to the team. `Rollout` has two."""


def task_rows(team: Team, task: str) -> Iterator[QuerySet[Any]]:
    """What belongs to a task but to none of its sessions."""
    yield Board.objects.filter(team=team, kind=Board.Kind.TASK, name=task)
    yield Use.objects.filter(budget__team=team, budget__scope="task", key=task)
    yield Budget.objects.filter(team=team, scope="task", name=task)


def text_rows(team: Team, text: str) -> Iterator[QuerySet[Any]]:
    """What may quote a text outside sessions."""
    yield SavedSearch.objects.filter(Q(query__icontains=text) | Q(name__icontains=text), team=team)
    yield Note.objects.filter(board__team=team, text__icontains=text)
    yield Answer.objects.filter(team=team, session=None)


def delete_all(found: Iterator[QuerySet[Any]]) -> Counter[str]:
    """Delete rows with what points at them; return their numbers by table."""
    counts: Counter[str] = Counter()
    for rows in found:
        many = rows.count()
        if many:
            rows.delete()
            counts[name_of(rows.model)] += many
    return counts


def member_rows(team: Team, user: User) -> Iterator[QuerySet[Any]]:
    """What a person wrote or holds in a team."""
    yield StepNote.objects.filter(session__team=team, author=user)
    yield Review.objects.filter(item__team=team, reviewer=user)
    theirs = Q(invited_by=user) | Q(accepted_by=user)
    if user.email:
        theirs |= Q(email__iexact=user.email)
    yield Invitation.objects.filter(theirs, team=team)
    yield Key.objects.filter(team=team, owner=user)


def erase_member(erasure: Erasure, actor: audit.Actor) -> None:
    """Remove a member with what they wrote in the team; their account too, if they are in no
    other. The audit log has a pseudonym instead. Raises LastOwner."""
    user = User.objects.filter(pk=erasure.member or 0).first()
    if user is None:
        return
    with transaction.atomic():
        membership = Membership.objects.filter(team=erasure.team, user=user).first()
        if membership is not None:
            remove(membership, actor)
        counts = delete_all(member_rows(erasure.team, user))
        erase_from_log(erasure.team, user, actor)
        for model, (column, way) in BY.items():
            model._default_manager.filter(**{way: erasure.team, column: user}).update(
                **{column: None}
            )
        for column in ("proposed_by", "decided_by"):
            Rollout.objects.filter(team=erasure.team, **{column: user}).update(**{column: None})
        if not Membership.objects.filter(user=user).exists() and not user.is_superuser:
            end_sessions(user)
            user.delete()
            counts["account"] += 1
        erasure.counts = dict(Counter(erasure.counts) + counts)
        erasure.save(update_fields=["counts"])


def team_rows(team: Team, but_job: Any) -> Iterator[QuerySet[Any]]:
    """All rows of a team besides KEPT, what protects others first."""
    first: tuple[type[models.Model], ...] = (Rollout, Simulation, Tuning, Policy)
    for model in first:
        yield model._default_manager.filter(team=team)
    for model in apps.get_app_config("agent_sessions").get_models():
        named = [field.name for field in model._meta.fields if field.related_model is Team]
        if model in (*first, *KEPT) or "team" not in named:
            continue
        rows: QuerySet[Any] = model._default_manager.filter(team=team)
        yield rows.exclude(pk=but_job) if model is Job else rows


def erase_team(erasure: Erasure) -> None:
    """Delete everything of a team whose sessions are gone, and its name. The audit log, receipts
    and the person who asked stay."""
    team = erasure.team
    with transaction.atomic():
        uploads = objects.forget(_uploads(team))
        Team.objects.filter(pk=team.pk).update(active=None)
        counts = delete_all(team_rows(team, erasure.job_id))
        others = Membership.objects.filter(team=team).exclude(user=erasure.member)
        counts += delete_all(iter([others]))
        slug = f"erased-{team.pk.hex[:12]}"
        Team.objects.filter(pk=team.pk).update(name="Erased team", slug=slug)
        team.name, team.slug = "Erased team", slug
        counts["objects"] += uploads
        erasure.counts = dict(Counter(erasure.counts) + counts)
        erasure.save(update_fields=["counts"])


def _uploads(team: Team) -> set[str]:
    """Files that still wait for their import."""
    rows = ImportFile.objects.filter(import_run__team=team, state=ImportFile.State.WAITING)
    return objects.uploaded(rows.values_list("stored", flat=True))
