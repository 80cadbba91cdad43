"""Records that the modules of a package define: how strategies, importers, rules and pages are
found without a list of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from importlib import import_module
from inspect import getsource
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, Protocol, TypeVar


class _Ordered(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def order(self) -> int: ...


T = TypeVar("T")
R = TypeVar("R", bound=_Ordered)


def records_in(package: str, path: Iterable[str], name: str) -> list[Any]:
    """What each module of a package, and of the packages in it, defines under a name.

    In the order of the modules' names; modules that define nothing of that name, or only import it,
    are left out.
    """
    modules = (import_module(one.name) for one in walk_packages(path, f"{package}."))
    return [getattr(module, name) for module in modules if _defines(module, name)]


def in_order(found: Iterable[R]) -> dict[str, R]:
    """Records by name, in their order. Raises ValueError if two have one name or one order."""
    records = sorted(found, key=lambda one: one.order)
    refuse_twins(records, "name", lambda one: one.name, lambda one: type(one).__name__)
    refuse_twins(records, "order", lambda one: one.order, lambda one: one.name)
    return {one.name: one for one in records}


def refuse_twins(
    found: Iterable[T], what: str, value: Callable[[T], Hashable], name: Callable[[T], str]
) -> None:
    """Raise ValueError with a sentence that names the two, if records have an equal value."""
    seen: dict[Hashable, T] = {}
    for one in found:
        first = seen.setdefault(value(one), one)
        if first is not one:
            raise ValueError(
                f"{name(first)} and {name(one)} have the same {what}, {value(one)!r}. Change one"
            )


def _defines(module: ModuleType, name: str) -> bool:
    """Whether the module itself makes what it has under that name.

    A value does not know where it was made, so the source is asked.
    """
    return hasattr(module, name) and bool(
        re.search(rf"^{name}\b[^=\n]*=", getsource(module), re.MULTILINE)
    )
