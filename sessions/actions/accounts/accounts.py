"""User accounts: name, optional email address, password."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from sessions.actions.accounts import audit
from sessions.actions.accounts.emails import store_email
from sessions.actions.accounts.reserved import is_reserved


def check_name(name: str, own: User | None = None) -> str:
    """Validate a user name and return it normalized. Raises ValidationError if it is invalid or
    taken.

    "@" is rejected, because a name that looks like an email address could be someone else's.
    Reserved names are rejected as if they were taken.
    """
    found = User.normalize_username(name.strip())
    if own is not None and found == own.username:
        return found
    if "@" in found:
        raise ValidationError("A name cannot contain @. Enter your email address in its own field.")
    UnicodeUsernameValidator(message="Use only letters, digits and . + - _, without spaces.")(found)
    if is_reserved(found) or _others(own).filter(username__iexact=found).exists():
        raise ValidationError("This name is taken. Choose another.")
    return found


def check_email(email: str, own: User | None = None) -> str:
    """Validate an email address. Raises ValidationError if another account uses it."""
    if email and _others(own).filter(email__iexact=email).exists():
        raise ValidationError("Another account uses this email address. Enter a different one.")
    return email


def _others(own: User | None) -> QuerySet[User]:
    return User.objects.exclude(pk=own.pk) if own is not None else User.objects.all()


def new_account(name: str, email: str, password: str) -> User:
    """Build an unsaved user. Raises ValidationError with errors by field.

    Hashing takes about 0.3 s: call it before a transaction, which would block other writers for as
    long.
    """
    user = User(username=name, email=email)
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise ValidationError({"password": error.messages}) from None
    user.set_password(password)
    return user


def add_account(user: User) -> None:
    """Save a new user, in no team yet. Raises ValidationError with errors by field."""
    try:
        with transaction.atomic():
            user.save(force_insert=True)
            store_email(user, user.email)
    except IntegrityError:  # lost a race
        raise ValidationError({"name": ["This name is taken. Choose another."]}) from None


@transaction.atomic
def change_profile(user: User, name: str, email: str, actor: audit.Actor) -> None:
    """Change name and email address, both already checked."""
    before = User.objects.get(pk=user.pk)
    user.username = name
    user.save(update_fields=["username"])
    if before.username != name:
        audit.note_for(user, actor, "name.changed", user, before=before.username)
    if before.email.lower() != email.lower():
        store_email(user, email)
        audit.note_for(user, actor, "email.changed", user)
