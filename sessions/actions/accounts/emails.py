"""The email address of an account: one, confirmed or not, and one that waits for confirmation."""

from __future__ import annotations

from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.db import transaction


@transaction.atomic
def store_email(user: User, email: str, *, verified: bool = False) -> None:
    """Make this the only email address of an account; an empty one removes it."""
    EmailAddress.objects.filter(user=user).delete()
    if email:
        email = email.lower()
        # An address is confirmed for one account only.
        verified &= not EmailAddress.objects.is_verified(email)
        EmailAddress.objects.create(user=user, email=email, primary=True, verified=verified)
    if user.email != email:
        user.email = email
        user.save(update_fields=["email"])


@transaction.atomic
def waiting_email(user: User, email: str) -> EmailAddress:
    """An address that replaces the account's once it is confirmed; it ends an earlier one."""
    EmailAddress.objects.filter(user=user, primary=False).exclude(email=email.lower()).delete()
    return EmailAddress.objects.get_or_create(user=user, email=email.lower())[0]


def unconfirmed(user: User) -> EmailAddress | None:
    """The address that waits for confirmation: a new one, else the account's own."""
    rows = EmailAddress.objects.filter(user=user, verified=False)
    return rows.order_by("primary").first()
