"""Links with which a person sets a new password, for servers that send no mail."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction
from django.urls import reverse

from sessions.actions.accounts import audit
from sessions.actions.accounts.sign_on import signs_on
from sessions.models import Membership


class NotTheirs(ValueError):
    """Why this password cannot be reset here, as a sentence."""


@transaction.atomic
def reset_path(member: Membership, actor: audit.Actor) -> str:
    """The path of a link that sets a new password once, within a day; it is not stored.

    Raises NotTheirs if the actor is a person who does not own all teams of the member: the link
    would open the others, too.
    """
    if actor.user is not None:
        owned = Membership.objects.filter(user=actor.user, role=Membership.Role.OWNER)
        others = Membership.objects.filter(user=member.user)
        if others.exclude(team__in=owned.values("team")).exists():
            raise NotTheirs(
                f"{member.user.get_username()} is also in teams that you do not own. "
                "Run `contextlab reset` on the server instead."
            )
    path = path_for(member.user)
    audit.note_for(member.user, actor, "reset.made", member.user)
    return path


def path_for(user: User) -> str:
    """The path of such a link. Raises NotTheirs if the person signs in without a password."""
    from allauth.account.forms import default_token_generator
    from allauth.account.utils import user_pk_to_url_str

    name = user.get_username()
    if not user.is_active:
        raise NotTheirs(f"The account {name} is disabled.")
    if signs_on(user) or not user.has_usable_password():
        raise NotTheirs(f"{name} has no password: single sign-on or the printed address opens it.")
    given = [user_pk_to_url_str(user), default_token_generator.make_token(user)]
    return reverse("account_reset_password_from_key", args=given)
