"""What moved a figure most: parts of a change add up to it."""

from __future__ import annotations

import pytest

from sessions.models.dashboard.added_up import Slice
from sessions.models.dashboard.drivers import _parts, driver_of
from sessions.models.dashboard.slices import REST
from sessions.models.web.sums import Sums


def slices(**found: tuple[int, int]) -> dict[Slice, Sums]:
    """Agents with what they read of a prompt."""
    made: dict[Slice, Sums] = {}
    for agent, (read, prompt) in found.items():
        one = Sums()
        one.of.update({"read": read, "prompt": prompt})
        made[REST if agent == "rest" else (agent, "m", "")] = one
    return made


BEFORE, NOW = slices(a=(50, 100), b=(90, 100), rest=(5, 10)), slices(a=(10, 100), c=(95, 100))


@pytest.mark.parametrize("below", [(), ("prompt",)])
def test_the_parts_are_the_whole_change(below: tuple[str, ...]):
    parts = [one.part for one in _parts(0, NOW, BEFORE, "read", below)]
    whole = 105 / 200 - 145 / 210 if below else 105 - 145
    rest = (5 - 145 / 210 * 10) / 210 if below else 5  # of agents without a name
    assert sum(parts) - rest == pytest.approx(whole)


def test_it_is_the_one_that_moved_most_in_the_direction_of_the_change():
    fell = driver_of(NOW, BEFORE, "read")
    assert fell is not None and (fell.by, fell.value, fell.part) == ("agent", "b", -90)
    rose = driver_of(BEFORE, NOW, "read")
    assert rose is not None and (rose.value, rose.part) == ("b", 90)
    ratio = driver_of(NOW, BEFORE, "read", "prompt")
    assert ratio is not None and ratio.value == "a" and ratio.part < 0


def test_nothing_moved_or_all_are_one():
    assert driver_of(NOW, NOW, "read") is None
    assert driver_of(slices(a=(1, 2)), slices(a=(3, 4)), "read") is None
    assert driver_of({}, {}, "read", "prompt") is None
