"""Reserved user names: no reader of the audit log may mistake a person for the product."""

from __future__ import annotations

import unicodedata
from functools import cache

from sessions.actions.accounts.audit import COMMAND, DEMO, GUARDRAIL, POLICY, stranger
from sessions.actions.accounts.chain import ERASED
from sessions.actions.accounts.teams import LOCAL_USER

_SAME = str.maketrans({"i": "l", "1": "l", "|": "l", "0": "o", "5": "s", "-": "", "_": "", ".": ""})
"""ASCII that is taken for other ASCII, and what may stand between letters."""


def is_reserved(name: str) -> bool:
    """Whether a name reads like one of ours, in any case and with letters that look alike.

    The local user's name is reserved even before that user exists, because the printed sign-in
    address signs in anyone who has it.
    """
    seen = skeleton(name)
    return seen in _skeletons() or seen.startswith(skeleton(ERASED))


@cache
def _skeletons() -> frozenset[str]:
    actors = (*(one.name for one in (COMMAND, DEMO, GUARDRAIL, POLICY, stranger())), LOCAL_USER)
    return frozenset(skeleton(one.replace(" ", "")) for one in (*actors, "contextlab", "system"))


def skeleton(name: str) -> str:
    """What a reader sees: equal for names that look alike."""
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(one for one in plain if not unicodedata.combining(one))
    if not plain.isascii():
        plain = "".join(map(_latin, plain))
    return plain.casefold().translate(_SAME).replace("rn", "m")


def _latin(letter: str) -> str:
    """The ASCII letter that a letter looks like, if there is one."""
    if letter.isascii():
        return letter
    # The tables have 1 MB: few names need them.
    from confusable_homoglyphs.confusables import confusables_data

    alike = [one["c"] for one in confusables_data.get(letter, ())]
    return next((one for one in alike if one.isascii() and one.isalnum()), letter)
