"""Teams, their creation, and the local user."""

import secrets

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.text import slugify

from sessions.actions.accounts import audit
from sessions.models import Membership, Team

LOCAL_USER = "local"
LOCAL_TEAM = "local"


@transaction.atomic
def local_team() -> Team:
    """The team of the local user; created if missing."""
    team, _ = Team.objects.get_or_create(slug=LOCAL_TEAM, defaults={"name": "Local"})
    Membership.objects.get_or_create(
        user=_local_user(), team=team, defaults={"role": Membership.Role.OWNER}
    )
    return team


def team_named(slug: str | None) -> Team | None:
    """The team with that slug, or the local team for None. Returns None if there is no such
    team."""
    return local_team() if slug is None else Team.objects.filter(slug=slug).first()


@transaction.atomic
def team_called(name: str) -> tuple[Team, bool]:
    """The team with that slug or name, created if missing; also whether it was created.

    The local user becomes the owner, so that the operator can open its pages. Raises ValueError for
    a name without a letter or digit.
    """
    slug = slugify(name)[:50]
    if not slug:
        raise ValueError(
            "The team name contains no letter or digit. Use at least one letter from a to z or "
            "one digit."
        )
    local_team()
    team, made = Team.objects.get_or_create(slug=slug, defaults={"name": name[:100]})
    if made:
        Membership.objects.create(user=local_user(), team=team, role=Membership.Role.OWNER)
        audit.note(team, audit.COMMAND, "team.made", team.name)
    return team, made


@transaction.atomic
def make_team(name: str, user: User, actor: audit.Actor) -> Team:
    """Create a team owned by the user."""
    slug = wanted = slugify(name)[:43] or "team"
    while Team.objects.filter(slug=slug).exists():
        slug = f"{wanted}-{secrets.token_hex(3)}"
    team = Team.objects.create(slug=slug, name=name)
    Membership.objects.create(user=user, team=team, role=Membership.Role.OWNER)
    audit.note(team, actor, "team.made", name)
    return team


@transaction.atomic
def rename_team(team: Team, name: str, actor: audit.Actor) -> None:
    """Rename a team. Its slug, used by URLs and commands, stays."""
    before, team.name = team.name, name
    if before != name:
        team.save(update_fields=["name"])
        audit.note(team, actor, "team.renamed", name, before=before)


def local_user() -> User:
    """The user that the printed sign-in URL signs in; it has no password."""
    local_team()
    return _local_user()


def has_account(user: User) -> bool:
    """Whether a user has a way in of their own; the local user has none without a password."""
    return user.username != LOCAL_USER or user.has_usable_password()


def _local_user() -> User:
    # Django stores a password of None as one that no input matches.
    found, _ = User.objects.get_or_create(
        username=LOCAL_USER, defaults={"password": make_password(None)}
    )
    return found
