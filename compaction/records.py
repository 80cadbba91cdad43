"""Records that the modules of a package define: how strategies, importers, rules and pages are
found without a list of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from inspect import getsource
from pkgutil import walk_packages
from types import ModuleType
from typing import Any


def records_in(package: str, path: Iterable[str], name: str) -> list[Any]:
    """What each module of a package, and of the packages in it, defines under a name.

    In the order of the modules' names; modules that define nothing of that name, or only import it,
    are left out.
    """
    modules = (import_module(one.name) for one in walk_packages(path, f"{package}."))
    return [getattr(module, name) for module in modules if _defines(module, name)]


def _defines(module: ModuleType, name: str) -> bool:
    """Whether the module itself makes what it has under that name.

    A value does not know where it was made, so the source is asked.
    """
    return hasattr(module, name) and bool(
        re.search(rf"^{name}\b[^=\n]*=", getsource(module), re.MULTILINE)
    )
