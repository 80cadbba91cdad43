"""Secrets that we must send, and so cannot hash: encrypted with the server's secret key.

A copy of the database alone reveals none of them.
"""

from __future__ import annotations

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings


class Unsealable(Exception):
    """The secret was encrypted with another secret key."""


def seal(text: str) -> bytes:
    """Encrypt a text; an empty one stays empty."""
    return _cipher().encrypt(text.encode()) if text else b""


def unseal(data: bytes | memoryview) -> str:
    """Decrypt what `seal` made. Raises Unsealable."""
    try:
        return _cipher().decrypt(bytes(data)).decode() if data else ""
    except InvalidToken:
        raise Unsealable from None


def _cipher() -> Fernet:
    key = hashlib.sha256(f"contextlab.notifications {settings.SECRET_KEY}".encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))
