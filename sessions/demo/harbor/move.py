"""The session that goes wrong: services move to another cluster, and a summary loses a port."""

from __future__ import annotations

import random
from collections.abc import Sequence

from sessions.demo.harbor import runs
from sessions.demo.harbor.code import AREAS, Area
from sessions.demo.stage import Done, Stage
from sessions.demo.workspace import Workspace, script

COMPACTED_AFTER = 19
"""Units moved when the window is 80 % full, where Claude Code compacts automatically."""

_GATEWAY = "quay-gw.skarvik-2.internal"
_SAVED = "/var/lib/quay/routes-before-move.json"


class ClusterMove:
    """Plays the agent: first every unit is moved, then every route is switched."""

    def __init__(self, stage: Stage, workspace: Workspace) -> None:
        self._stage = stage
        self._files = workspace
        self._random = random.Random("move")  # noqa: S311 (a script, not a secret)
        self._moved: list[Area] = []
        self._compacted = False

    def play(self) -> None:
        """Play from the task to the final message."""
        self._stage.human(_TASK)
        self._begin()
        for area in AREAS:
            self._move(area)
            if len(self._moved) == 8:
                self._look_in()
        self._switch()
        self._end()

    def _step(self, think: str, say: str, done: Sequence[Done] = ()) -> None:
        if len(self._moved) == COMPACTED_AFTER and not self._compacted:
            self._compact()
        self._stage.step(think, say, done)

    def _bash(self, command: str, output: str, took: int = 900, *, error: bool = False) -> Done:
        return self._files.bash(command, output, took=took, error=error)

    def _begin(self) -> None:
        files = self._files
        self._step("", "First how the clusters differ, then one unit as a pattern.", [
            files.read("docs/cluster.md"), files.read("README.md")])  # fmt: skip
        self._step(
            "The admin side of the gateway is on 8417 of quay-gw.skarvik-2.internal, and routes "
            "are saved before the first one is switched.",
            "What I keep in mind: units first, then routes. The gateway's admin side answers on "
            "port 8417, and the old routes are saved before anything is switched.",
            [self._bash(f"deploy/route --list --host {_GATEWAY} --port 8417", "20 routes")],
        )
        self._step("", "It answers. The routes are saved now, while nothing has changed.", [
            self._bash(f"deploy/route --save {_SAVED} --port 8417",
                       f"20 routes saved to {_SAVED}")])  # fmt: skip

    def _move(self, area: Area) -> None:
        """Read a unit, copy its volume, change it, apply it, and run its tests."""
        files, step = self._files, self._step
        step(
            "",
            f"{area.package}.",
            [
                files.read(area.unit),
                files.grep(f"{area.package}.skarvik-1|/srv/harbor/{area.package}"),
            ],
        )
        if len(self._moved) % 3 == 1:
            step("", "What it writes to its volume decides how it is copied.", [
                files.read(area.store)])  # fmt: skip
        step("", "", [self._bash(
            f"deploy/copy {area.package} --to skarvik-2", self._copied(area), 8_200)])  # fmt: skip
        step("", "", [
            files.edit(area.unit, 'cluster = "skarvik-1"', 'cluster = "skarvik-2"'),
            files.edit(area.unit, f'internal = "{area.package}.skarvik-1.internal"',
                       f'internal = "{area.package}.skarvik-2.internal"'),
        ])  # fmt: skip
        if len(self._moved) in (4, 11):
            step("", "", [self._bash(
                f"deploy/apply {area.unit}", self._refused(area), 6_100, error=True)])  # fmt: skip
            step("Replica 2 did not start: 384 MB are not enough while the cache is cold.", "", [
                files.edit(area.unit, "memory_mb = 384", "memory_mb = 512")])  # fmt: skip
        step(
            "",
            "",
            [self._bash(f"deploy/apply {area.unit}", runs.applied(self._random, area, 75), 31_000)],
        )
        step("", "", [self._bash(
            f"python -m pytest -v {area.test} --against skarvik-2",
            runs.passed(self._random, [area]), 5_200)])  # fmt: skip
        sha = f"d{self._random.getrandbits(24):06x}"
        subject = f"{area.package.title()} runs on skarvik-2"
        files.commit()
        step("", "", [self._bash(
            f'git commit -am "{subject}"', runs.committed(sha, subject, 1))])  # fmt: skip
        self._moved.append(area)

    def _copied(self, area: Area) -> str:
        chance = self._random
        return "\n".join(
            f"/srv/harbor/{area.package}/data/{chance.getrandbits(32):08x}.seg "
            f"{chance.randint(1, 64)} MB sum={chance.getrandbits(48):012x} ok"
            for _ in range(48)
        )

    def _refused(self, area: Area) -> str:
        whole = runs.applied(self._random, area, 40).splitlines()[:-2]
        return "\n".join([*whole, f"replica 2 of harbor-{area.package}: killed, out of memory"])

    def _look_in(self) -> None:
        self._step("", "Eight services run on skarvik-2; their routes still point to skarvik-1.")
        self._stage.idle(50_000)
        self._stage.human("Good. All units first, as planned; routes when I am back from lunch.")

    # What the summary keeps, and what it does not

    def _compact(self) -> None:
        self._compacted = True
        moved = ", ".join(area.package for area in self._moved)
        left = ", ".join(area.package for area in AREAS[len(self._moved) :])
        text = script("move--summary").replace("${moved}", moved).replace("${left}", left)
        self._stage.compact("auto", text)

    def _switch(self) -> None:
        """Switch the routes: the port is not in the summary, so the first attempts fail."""
        first = AREAS[0]
        self._step("", "All units are moved.")
        self._stage.idle(240_000)
        self._stage.human("Back. Please switch the routes now, berths first.")
        refused = "route: cannot reach the gateway on {} (connection refused)\ngive its --port"
        self._step("", f"Routes, {first.package} first.", [self._bash(
            f"deploy/route {first.package} --port 8080", refused.format(8080), 2_300,
            error=True)])  # fmt: skip
        self._step("8080 is the usual one. Perhaps the admin side is behind TLS.", "", [
            self._bash(f"deploy/route {first.package} --port 443",
                       refused.format(443), 2_300, error=True)])  # fmt: skip
        self._step("", "Is the gateway up at all?", [self._bash(
            "deploy/status quay-gw", _STATUS)])  # fmt: skip
        self._step("", "It is up, so I ask the wrong port. Which services name one?", [
            self._files.grep("port = ", "deploy/units")])  # fmt: skip
        self._step("", "I do not know the port of the gateway's admin side. Do you?")
        self._stage.idle(30_000)
        self._stage.human("No, that is wrong: you used it this morning. It is in docs/cluster.md.")
        self._step(
            "I had it before my context was compacted; the summary does not name it.",
            "I knew the port before my context was compacted, and the summary lacks it. Back to "
            "the page.",
            [self._files.read("docs/cluster.md")],
        )
        self._step("", f"Port 8417, and the old routes are in {_SAVED}.", [self._bash(
            f"deploy/route {first.package} --port 8417 && deploy/route --compare {_SAVED}",
            self._routed(first))])  # fmt: skip
        for area in AREAS[1:]:
            self._step("", "", [self._bash(
                f"deploy/route {area.package} && deploy/probe {area.package} --for 30s",
                self._routed(area), 33_000)])  # fmt: skip

    def _routed(self, area: Area) -> str:
        lines = [f"route {area.package}.skarvik-2.internal -> port {area.port}: switched"]
        for second in range(0, 30, 2):
            took = self._random.randint(4, 60)
            lines.append(f"probe {second:>2} s /ready/{area.package} 200 {took} ms")
        return "\n".join(lines)

    def _end(self) -> None:
        self._step(
            "",
            "One last look at all routes.",
            [
                self._bash(
                    "deploy/status --routes",
                    "\n".join(
                        f"{area.package:<10} skarvik-2 {area.port} ready 2/2" for area in AREAS
                    ),
                )
            ],
        )
        self._step(
            "",
            "All twenty services run on skarvik-2 and their routes point there. Two units needed "
            f"512 MB. The routes from before are in {_SAVED}.",
        )


_TASK = (
    "Please move our twenty services from skarvik-1 to skarvik-2. docs/cluster.md says how. Move "
    "all units first; the routes are switched at the end, when I say so. Nothing may be lost: copy "
    "each volume before you change its unit, and run the tests of each service against the new "
    "cluster."
)
_STATUS = """quay-gw    skarvik-2   replicas 2/2   up 19 days
  public    443    ready
  admin     (hidden)   ready
  routes    20, saved this morning"""
