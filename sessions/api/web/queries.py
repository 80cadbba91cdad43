"""Query parameters: an unknown one is refused, because ignoring it would answer something else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from functools import wraps
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from ninja.operation import Operation
from ninja.params.models import QueryModel

from sessions.access import CHOSEN_TEAM, Asker
from sessions.api.web.problems import Refusal

_SHOWN_CHARS = 60


class UnknownParameter(NamedTuple):
    """A query parameter that is not known, and the known one that is nearest, if there are any."""

    name: str
    nearest: str

    @property
    def sentences(self) -> str:
        """What is wrong, and what to do."""
        instead = f"Use ?{self.nearest}, or remove it" if self.nearest else "It has none; remove it"
        return f"?{self.name} is not a parameter of this URL. {instead}."


def unknown_in(asked: Iterable[str], known: Collection[str]) -> UnknownParameter | None:
    """The first name that is not known; None if all are."""
    for name in asked:
        if name not in known:
            shown = "".join(letter for letter in name[:_SHOWN_CHARS] if letter.isprintable())
            nearest = get_close_matches(shown, sorted(known), n=1, cutoff=0)
            return UnknownParameter(shown, nearest[0] if nearest else "")
    return None


def check_queries(run: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate operations ("view" mode) to refuse query parameters that their signature lacks."""
    operation: Operation = run.__self__  # type: ignore[attr-defined]
    models = [model for model in operation.models if issubclass(model, QueryModel)]
    known = frozenset(name for model in models for name in model.__ninja_flatten_map__)
    # Inside the operation's run, so that credentials are checked first.
    operation.view_func = _checked(operation.view_func, known)
    return run


def _checked(view: Callable[..., HttpResponse], known: frozenset[str]) -> Any:
    by_person = known | {CHOSEN_TEAM}

    @wraps(view)
    def checked(request: HttpRequest, **given: Any) -> HttpResponse:
        asker = getattr(request, "auth", None)
        named = isinstance(asker, Asker) and asker.key is None
        unknown = unknown_in(request.GET, by_person if named else known)
        if unknown is not None:
            raise Refusal(422, "Unknown parameter", unknown.sentences, field=f"?{unknown.name}")
        for name, values in request.GET.lists():
            if any("\0" in value for value in values):
                said = f"?{name} contains the character NUL. Remove it."
                raise Refusal(422, "Invalid parameter", said, field=f"?{name}")
        return view(request, **given)

    return checked
