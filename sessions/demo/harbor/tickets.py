"""A coding agent that works on tickets: it searches, reads, tests, edits, fails, and commits."""

from __future__ import annotations

import random
from collections.abc import Sequence

from sessions.demo.harbor import runs
from sessions.demo.harbor.code import AREAS, Area, limit
from sessions.demo.stage import Done, Stage
from sessions.demo.workspace import Workspace


class Tickets:
    """Plays tickets on a stage. `seed` decides details only; `many` areas are worked on from
    `first` on, and a person writes before every `each` of them."""

    def __init__(self, stage: Stage, workspace: Workspace, seed: str) -> None:
        self._stage = stage
        self._files = workspace
        self._random = random.Random(seed)  # noqa: S311 (a script, not a secret)
        self._moved: dict[tuple[str, str], int] = {}
        self._untagged: list[tuple[int, str]] = []

    def play(self, first: int, many: int, each: int = 5) -> None:
        """Work on the tickets, from the task to the final message."""
        areas = [AREAS[(first + at) % len(AREAS)] for at in range(many)]
        self._stage.human(
            f"The office sent new limits: docs/limits.md. Please bring {areas[0].package} to "
            f"{areas[-1].package} up to date, {many} areas, code and tests. One commit each, with "
            "the circular in its message. Change nothing else."
        )
        self._begin(areas)
        for done, area in enumerate(areas):
            if done and done % each == 0:
                self._ask(areas[done:], areas[done - each])
            self._ticket(area, done)
        self._end(areas)

    def _begin(self, areas: Sequence[Area]) -> None:
        files = self._files
        plan = ", ".join(f"{area.package} {_circular(area)}" for area in areas)
        self._stage.step("", "First what the office wants, and how this is tested.", [
            files.read("README.md"), files.read("docs/limits.md")])  # fmt: skip
        self._stage.step("", f"Circulars, in this order: {plan}.", [files.bash(
            "git status --short && git log --oneline -5", _LOG)])  # fmt: skip

    def _ask(self, left: Sequence[Area], before: Area) -> None:
        """A person looks in between two tickets."""
        said = "; ".join(
            f"{before.thing}_{field} {self._moved[before.package, field]}"
            for field in before.fields[:2]
        )
        self._stage.step("", f"{len(left)} areas are left. Done last: {said}.", [])
        self._stage.idle(70_000 + self._random.randint(0, 60_000))
        self._stage.human(
            f"Good. Go on with {left[0].package}. For {before.package} the number is right, I "
            "asked the office. Please tag the commits so far with their circulars, for the audit."
        )
        self._tag()

    def _ticket(self, area: Area, number: int) -> None:
        files, step = self._files, self._stage.step
        field = area.fields[0]
        name = f"{area.thing}_{field}"
        index = AREAS.index(area)
        old = limit(0, index)
        self._moved |= {(area.package, one): limit(at, index) + 5
                        for at, one in enumerate(area.fields[:2])}  # fmt: skip
        step(
            f"{area.package}: the circular moves {name} from {old} to {old + 5}. Callers first: "
            "the number may be copied elsewhere.",
            f"Next: {area.package}.",
            [files.grep(f"{area.thing}_[a-z_]+|{name.upper()}", context=1 if number % 3 else 2)],
        )
        step("", "", [files.read(area.rules), files.read(area.test)])
        if number % 2:
            step("The store may filter by the same number.", "", [files.read(area.store)])
        step("", "Its tests as they are.", [self._test([area])])
        step(
            "",
            f"Now the limit: {old + 5}.",
            [
                files.edit(
                    area.rules, f"{name.upper()}_MAX = {old}", f"{name.upper()}_MAX = {old + 5}"
                )
            ],
        )
        step("", "", [self._failing(area, old)])
        self._edit_test(area, old, slips=number % 4 == 2)
        self._second(area, index)
        step("", "", [self._test([area])])
        if number % 3 == 2:
            step("", "Types and style.", [files.bash("make check", runs.checked(self._random))])
        self._commit(area)

    def _edit_test(self, area: Area, old: int, *, slips: bool) -> None:
        """Bring the test of the first measure up to date; at the second attempt if it slips."""
        files, step, name = self._files, self._stage.step, f"{area.thing}_{area.fields[0]}"
        if slips:
            # From memory, with a line that is not in the file.
            line = f"    assert check_{name}({old + 5}) == []"
            wrong = f"    assert check_{name}({old}, limits) == []"
            step("", "", [files.edit(area.test, wrong, line)])
            lines = files.files[area.test].splitlines()
            start = 1 + lines.index(f"def test_{name}_at_the_limit():")
            step("That line is not what the file says.", "", [files.read(area.test, start, 8)])
        at, over = f"check_{name}({old}) == []", f"check_{name}({old + 5}) == []"
        step(f"The test still has {old}, so it fails as it should.", "", [
            files.edit(area.test, at, over)])  # fmt: skip
        at, over = f"check_{name}({old + 1})", f"check_{name}({old + 6})"
        step("", "", [files.edit(area.test, at, over)])

    def _second(self, area: Area, index: int) -> None:
        """The second measure of the circular, code and test at once."""
        name, old = f"{area.thing}_{area.fields[1]}", limit(1, index)
        self._stage.step("", f"The same for {name}: {old} becomes {old + 5}.", [
            self._files.edit(
                area.rules, f"{name.upper()}_MAX = {old}", f"{name.upper()}_MAX = {old + 5}"),
            self._files.edit(
                area.test, f"check_{name}({old}) == []", f"check_{name}({old + 5}) == []"),
            self._files.edit(area.test, f"check_{name}({old + 1})", f"check_{name}({old + 6})"),
        ])  # fmt: skip

    def _test(self, areas: Sequence[Area]) -> Done:
        names = " ".join(area.test for area in areas)
        return self._files.bash(
            f"python -m pytest -v {names}", runs.passed(self._random, areas), took=3_400
        )

    def _failing(self, area: Area, old: int) -> Done:
        output = runs.failed(self._random, area, area.fields[0], old + 1)
        return self._files.bash(f"python -m pytest -v {area.test}", output, took=2_900, error=True)

    def _commit(self, area: Area) -> None:
        circular = _circular(area)
        subject = f"{area.package.title()}: new limits by circular {circular}"
        sha = f"c{self._random.getrandbits(24):06x}"
        self._untagged.append((circular, sha))
        self._files.commit()
        self._stage.step("", "", [self._files.bash(
            f'git commit -am "{subject}"', runs.committed(sha, subject, 2))])  # fmt: skip

    def _tag(self) -> None:
        """Tag commits since the last time: numbers and hashes from some tickets ago."""
        tags = " && ".join(f"git tag circular-{number} {sha}" for number, sha in self._untagged)
        self._untagged.clear()
        self._stage.step("", "", [self._files.bash(tags, "")])

    def _end(self, areas: Sequence[Area]) -> None:
        step = self._stage.step
        step("", "All of them once more, together.", [self._test(areas)])
        self._tag()
        rows = "\n".join(
            f"- {area.package}: {area.thing}_{area.fields[0]} and {area.thing}_{area.fields[1]}"
            for area in areas
        )
        step("", f"{len(areas)} areas have the new limits, one commit each:\n{rows}", [])


def _circular(area: Area) -> int:
    return 2600 + 7 * AREAS.index(area)


_LOG = """3f0c1aa Gates: the barrier stays open for long vehicles
91be77d Notices: no message at night
c27d0e4 Tides: a sensor without power is not low water
5a9e310 Fuel: density by temperature
e0b44f8 Customs: seals are counted once"""
