"""What open pages watch: topics, their versions, and who may see them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import NamedTuple

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as BrowserSession
from django.utils import timezone

from sessions.actions.accounts.second_factor import owing_among
from sessions.models import Job, Membership, Session
from sessions.models.policies.rollouts import topic_versions
from sessions.models.record.list_versions import list_version, together

LIST = "sessions"


class Seen(NamedTuple):
    """A snapshot of access rights and versions."""

    teams: dict[int, set[uuid.UUID]]
    signed_in: set[str]
    proofs: dict[int, str]
    versions: dict[str, tuple[uuid.UUID, int]]
    lists: dict[uuid.UUID, int]

    def version(self, user: int, topic: str) -> int | None:
        """The version of a topic; None if it does not exist or the user is not in its team, or,
        for the list, in no team."""
        teams = self.teams.get(user, set())
        if topic == LIST:
            return together(self.lists.get(team, 0) for team in teams) if teams else None
        team, version = self.versions.get(topic, (None, None))
        return version if team in teams else None


def look(users: Iterable[int], keys: Iterable[str], topics: set[str]) -> Seen:
    """Read versions and access rights for many pages in a few short queries."""
    teams: dict[int, set[uuid.UUID]] = {}
    people = User.objects.filter(pk__in=set(users), is_active=True)
    proofs = {person.pk: person.get_session_auth_hash() for person in people}
    members = Membership.objects.filter(user__in=set(users), user__is_active=True)
    for user, team in members.values_list("user_id", "team_id"):
        teams.setdefault(user, set()).add(team)
    for user in owing_among(teams):
        del teams[user]
    alive = BrowserSession.objects.filter(session_key__in=set(keys), expire_date__gt=timezone.now())
    versions: dict[str, tuple[uuid.UUID, int]] = {}
    kept = Session.objects.filter(erasing=None)
    for name, rows in (("job", Job.objects.all()), ("session", kept)):
        ids = [found for topic in topics if (found := id_in(topic, name))]
        if ids:
            for row, team, version in rows.filter(id__in=ids).values_list("id", "team", "version"):
                versions[f"{name}:{row}"] = (team, version)
    rollouts = [found for topic in topics if (found := id_in(topic, "rollout"))]
    if rollouts:
        for row, seen in topic_versions(rollouts).items():
            versions[f"rollout:{row}"] = seen
    watched = {team for found in teams.values() for team in found} if LIST in topics else ()
    lists = {team: list_version(team) for team in watched}
    signed_in = set(alive.values_list("session_key", flat=True))
    return Seen(teams, signed_in, proofs, versions, lists)


def id_in(topic: str, name: str) -> uuid.UUID | None:
    """The id in a topic with this name; None if it is another topic or has none."""
    kind, _, value = topic.partition(":")
    try:
        found = uuid.UUID(value) if kind == name else None
    except ValueError:
        return None
    return found if found is not None and str(found) == value else None
