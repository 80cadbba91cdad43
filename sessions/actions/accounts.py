"""Accounts of people: a name, an e-mail if they like, a password."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from sessions.actions.teams import LOCAL_USER


def check_name(name: str, own: User | None = None) -> str:
    """The name as it is stored. Raises ValidationError for one that cannot be had.

    No "@": what looks like an e-mail must not be somebody else's name. The local user's is taken
    even before he is there, since the printed address signs in whoever is called so.
    """
    found = User.normalize_username(name.strip())
    if own is not None and found == own.username:
        return found
    if "@" in found:
        raise ValidationError("A name has no @. Your e-mail has a field of its own.")
    UnicodeUsernameValidator(message="Letters, digits and . + - _ only, without blanks.")(found)
    if found.casefold() == LOCAL_USER or _others(own).filter(username__iexact=found).exists():
        raise ValidationError("This name is taken. Choose another.")
    return found


def check_email(email: str, own: User | None = None) -> str:
    """The e-mail as it is stored. Raises ValidationError for that of another account."""
    if email and _others(own).filter(email__iexact=email).exists():
        raise ValidationError("This address belongs to another account.")
    return email


def _others(own: User | None) -> QuerySet[User]:
    return User.objects.exclude(pk=own.pk) if own is not None else User.objects.all()


def new_account(name: str, email: str, password: str) -> User:
    """A new person, not stored yet. Raises ValidationError, by field.

    Hashing takes a third of a second: call it before a transaction, which would lock the others
    out for as long.
    """
    user = User(username=name, email=email)
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise ValidationError({"password": error.messages}) from None
    user.set_password(password)
    return user


def add_account(user: User) -> None:
    """Store a new person, in no team yet. Raises ValidationError, by field."""
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError:  # somebody was faster
        raise ValidationError({"name": ["This name is taken. Choose another."]}) from None


def change_password(user: User, password: str) -> None:
    """Another password: every browser session of the person ends. Raises ValidationError."""
    validate_password(password, user)
    user.set_password(password)
    user.save(update_fields=["password"])
