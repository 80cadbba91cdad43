"""What members and programs that only read are shown while a team masks its content."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Any
from uuid import UUID

from sessions.models.accounts.teams import Team
from sessions.models.masking.masking import rules_of
from sessions.models.masking.rule_sets import RuleSet

LONGEST_LINE = 400
"""Code points of a text that is remembered with its masks: a page shows the same lines often."""
REMEMBERED = 20_000

_lines: OrderedDict[tuple[str, str], str] = OrderedDict()
_lock = Lock()


class ReaderView:
    """How one reader sees content: blobs by the rules of their team, and what lies in columns (no
    column says whose it is) by those of all the reader's teams that mask.

    `teams` returns the reader's teams; None while the reader is not known yet, or for a program
    that gets back what it sends: then nothing is masked.
    """

    def __init__(self, teams: Callable[[], Iterable[Team] | None]) -> None:
        self._teams = teams
        self._known: dict[UUID, RuleSet] | None = None
        self.masked: set[str] = set()
        """Hashes of what was read with masks."""

    @property
    def _sets(self) -> dict[UUID, RuleSet]:
        if self._known is None:
            teams = self._teams()
            if teams is None:
                return {}
            self._known = {
                team.pk: RuleSet(team.pk, rules_of(team.pk)) for team in teams if team.show_masked
            }
        return self._known

    @property
    def on(self) -> bool:
        """Whether anything is masked."""
        return bool(self._sets)

    @property
    def seal(self) -> str:
        """Names the rules by which content is masked; empty if none is."""
        return ".".join(one.seal for one in self._sets.values())

    def contents(self, team: UUID, found: Mapping[str, bytes]) -> dict[str, bytes]:
        """Stored bytes of a team by hash, with masks."""
        rules = self._sets.get(team)
        if rules is None:
            return dict(found)
        made = rules.contents(found)
        self.masked.update(sha for sha, data in made.items() if data is not found[sha])
        return made

    def value(self, value: Any) -> Any:
        """A text or another JSON value with masks."""
        for rules in self._sets.values():
            value = _line(rules, value) if isinstance(value, str) else rules.value(value)
        return value


def _line(rules: RuleSet, text: str) -> str:
    if len(text) > LONGEST_LINE:
        return str(rules.value(text))
    key = rules.seal, text
    with _lock:
        if key in _lines:
            _lines.move_to_end(key)
            return _lines[key]
    made = str(rules.value(text))
    with _lock:
        _lines[key] = made
        while len(_lines) > REMEMBERED:
            _lines.popitem(last=False)
    return made
