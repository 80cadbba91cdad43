"""The state of folds in exports (`Run.fold`): whether it has the form that we write."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from sessions.importers.records import Json

_LARGEST = 10**15
"""Larger numbers are no tokens, no positions and no times in ms."""

_Count = Annotated[int, Field(ge=0, le=_LARGEST)]
_Whole = Annotated[int, Field(ge=-_LARGEST, le=_LARGEST)]
_Digest = Annotated[str, Field(max_length=64)]
_STRICT = ConfigDict(strict=True, extra="forbid")


@with_config(_STRICT)
class _Recorded(TypedDict):
    """As `Memory` of the live conversation."""

    head: Annotated[list[_Digest], Field(max_length=2)]
    setup: dict[str, list[Annotated[list[_Count | _Digest], Field(min_length=2, max_length=2)]]]
    visible: _Count


@with_config(_STRICT)
class _Managed(TypedDict):
    """As `marks_of` of the fold, and what is written beside it."""

    step: _Count
    last: _Count | None
    window: Annotated[int, Field(ge=1, le=10**9)]
    hidden: _Count
    scale: Annotated[int, Field(ge=1, le=10**6)] | None
    requested: _Count | None
    bound: bool
    marks: list[dict[str, _Whole]]
    failures: list[_Count]
    waiting: list[_Count | None]
    pins: list[_Count]
    gone: list[Annotated[list[_Count], Field(min_length=2, max_length=2)]]
    writes: _Count
    recorded: _Count
    counted: _Count
    recited: _Count
    wanted: list[str]


_RECORDED: TypeAdapter[_Recorded] = TypeAdapter(_Recorded)
_MANAGED: TypeAdapter[_Managed] = TypeAdapter(_Managed)


def fits(origin: str, fold: dict[str, Json], head: int, blocks: int) -> bool:
    """Whether a run with revisions up to `head` can continue from this state, in a file with so
    many blocks; an empty one is read from the rows, which managed runs cannot be."""
    if origin != "managed":
        return not fold or _has_form(_RECORDED, fold)
    if len(fold) < 2:
        return head == 0 and fold in ({}, {"writes": 0})
    if not _has_form(_MANAGED, fold):
        return False
    ends = [-1, *(end for pair in fold["gone"] for end in pair), blocks]
    # Work grows with what they cover.
    apart = all(ends[i] < ends[i + 1] for i in range(0, len(ends), 2))
    per_strategy = (fold["marks"], fold["failures"], fold["waiting"])
    return apart and sorted(ends) == ends and len({len(one) for one in per_strategy}) == 1


def _has_form(form: TypeAdapter[Any], fold: dict[str, Json]) -> bool:
    try:
        form.validate_python(fold)
    except ValidationError:
        return False
    return True
