"""The definition of one setting: its default, range, and every word that pages say about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, TypedDict, Unpack

Group = Literal[
    "General", "Tool results", "Files", "Messages", "Compaction", "Cache", "Memory", "Limits"
]
"""What a setting is about, in the order of pages."""


class Details(TypedDict, total=False):
    """What else a setting may say."""

    between: tuple[float, float]
    """Range of a number."""
    slider: tuple[float, float]
    """Range of its slider, if not derived from the default and `tries`."""
    zero: str
    """What 0 is called, such as "never"."""
    choices: Mapping[str, str]
    """What each choice is called."""
    advanced: bool
    """Whether pages fold it."""
    objective: str
    """The only objective under which it has an effect."""
    tries: Sequence[Any]
    """Values that the tuner tries."""
    drawn: Sequence[Any]
    """Values that property tests draw."""


def setting(
    default: Any, label: str, says: str, group: Group, unit: str = "", **details: Unpack[Details]
) -> Any:
    """Return a dataclass field with the metadata of a setting.

    `label`, value and `unit` read as a sentence: "Offload a result after", 3, "steps". A share of
    at most 1 is shown in percent, and its unit begins with "%". `says` is one sentence of help.
    """
    said: dict[str, Any] = {"label": label, "help": says, "group": group, "unit": unit, **details}
    if "between" in details:
        low, high = said["min"], said["max"] = said.pop("between")
        share = isinstance(default, float) and high <= 1
        far = max(4 * default, 20, *details.get("tries", ()))
        said.setdefault("slider", (low, high if share else min(high, far)))
    return field(default=default, metadata=said)


def least_share(label: str, says: str, unit: str) -> Any:
    """Return the setting of a share by which a summary must shrink, or a context grow: 10 %."""
    return setting(
        0.10,
        label,
        says,
        "Compaction",
        unit,
        between=(0.0, 0.9),
        advanced=True,
        zero="anything",
        drawn=(0.0, 0.1, 0.3),
    )
