"""The long session: a reference of all modules, with three compactions."""

from __future__ import annotations

import random
from collections import Counter
from itertools import cycle
from string import Template

from sessions.demo import pages
from sessions.demo.player import Directive, Player, parse
from sessions.demo.stage import Done, Stage
from sessions.demo.survey import Module, survey
from sessions.demo.workspace import Workspace, script

TRIGGER = 160_000
"""Prompt tokens at which Claude Code compacts automatically: 80 % of its window."""

COMPACTIONS = 3
PAGES = 72
_LEAST_AFTER = 30
"""Minimum steps after the last compaction."""

_CHECK_EVERY = 4


class Writer:
    """Plays the agent: one page per module, and a summary when needed."""

    def __init__(self, stage: Stage, workspace: Workspace) -> None:
        self._stage = stage
        self._files = workspace
        self._player = Player(stage, workspace)
        self._random = random.Random("long")  # noqa: S311 (a script, not a secret)
        self._words = {
            name: cycle(getattr(pages, name))
            for name in ("BEFORE_READING", "BEFORE_SEARCHING", "BEFORE_WRITING")
        }
        self._asides = list(parse(script("long--asides")))
        self._done: list[Module] = []
        self._left: list[str] = []
        self._read: Counter[str] = Counter()
        self._compactions = 0
        self._compacted_at = 0

    def play(self) -> None:
        """Play from the task to the final message."""
        self._player.play(self._filled("long"))
        self._left = sorted(self._sources())[:PAGES]
        while self._left:
            self._document(survey(self._left.pop(0), self._sources()))
            if len(self._done) % 15 == 9 and self._asides:
                self._look_in()
        for module in cycle(self._done):
            if self._finished():
                break
            self._verify(module)
        self._player.play(self._filled("long--end"))

    def _filled(self, name: str) -> str:
        numbers = {"pages": str(PAGES), "lines": str(PAGES + 8)}
        return Template(script(name)).safe_substitute(numbers)

    def _sources(self) -> dict[str, str]:
        return {name: text for name, text in self._files.files.items() if name.endswith(".py")}

    def _finished(self) -> bool:
        after = self._stage.steps - self._compacted_at
        return self._compactions >= COMPACTIONS and after >= _LEAST_AFTER

    # Steps

    def _step(self, think: str, say: str, *done: Done) -> None:
        if self._stage.standing > TRIGGER and self._compactions < COMPACTIONS:
            self._compact()
        self._stage.step(think, say, done)

    def _say(self, words: str, module: Module) -> str:
        frame = next(self._words[words])
        number = len(self._done) + 1
        return frame.format(
            path=module.path, dotted=module.dotted, lines=module.lines, number=number
        )

    def _document(self, module: Module) -> None:
        noted = pages.notes(module)
        self._study(module, noted[-1])
        self._look_at_callers(module)
        thought = " ".join(noted[: 1 + self._random.randint(0, 2)])
        done = self._files.write(module.page, pages.page(module))
        self._step(thought, self._say("BEFORE_WRITING", module), done)
        self._done.append(module)
        if len(self._done) % _CHECK_EVERY == 0:
            self._check(self._done[-_CHECK_EVERY:])

    def _study(self, module: Module, noted: str) -> None:
        """Read a module and find its users, in one step or two."""
        self._read[module.path] += 1
        last = module.dotted.rpartition(".")[2]
        reading = self._files.read(module.path)
        searching = self._files.grep(rf"{last}\b.*import|import .*\b{last}\b")
        if len(self._done) % 2:
            self._step("", self._say("BEFORE_READING", module), reading, searching)
            return
        self._step("", self._say("BEFORE_READING", module), reading)
        thought = module.says and f"It says of itself: {module.says} {noted}"
        self._step(thought, self._say("BEFORE_SEARCHING", module), searching)

    def _look_at_callers(self, module: Module) -> None:
        """Places where a module is used, more for modules with more users."""
        callers = [path for path, _ in module.callers if not path.endswith("__init__.py")]
        if not callers or len(self._done) % 2:
            return
        wanted = self._random.sample(callers, min(len(callers), 2))
        done = []
        for path in wanted:
            self._read[path] += 1
            whole = self._files.files[path].count("\n")
            start = self._random.randint(1, max(whole - 90, 1))
            part = (start, 90) if whole > 150 else (0, 0)
            done.append(self._files.read(path, *part))
        self._step(f"How {wanted[0]} uses it decides what the page should stress.", "", *done)

    def _check(self, modules: list[Module]) -> None:
        names = " ".join(module.page for module in modules)
        output = "\n".join(
            f"{module.page}: {len(module.callers)} links, 0 anchors: ok" for module in modules
        )
        port = "--port 8417 --strict-anchors"
        self._step("", "", self._files.bash(
            f"python tools/linkcheck.py {port} {names}", output, took=2100
        ))  # fmt: skip

    def _verify(self, module: Module) -> None:
        """The second reading: compare a page with its module."""
        self._read[module.path] += 1
        done = [self._files.read(module.page), self._files.read(module.path)]
        names = ", ".join(f"`{name.name}`" for name in module.names[:3]) or "no public name"
        said = f"Second reading of `{module.dotted}`: {names} against what the page says."
        self._step(pages.notes(module)[0], said, *done)

    def _look_in(self) -> None:
        question, answer = self._asides.pop(0), self._asides.pop(0)
        self._stage.idle(40_000)
        self._player.do(question)
        self._player.do(answer)
        self._player.flush()
        # The user lets it continue.
        self._player.do(Directive("human", {}, "", "Fine, go on."))

    # What to keep of it

    def _compact(self) -> None:
        self._compactions += 1
        text = Template(script("long--summary")).substitute(self._kept())
        self._stage.compact("auto", text)
        self._compacted_at = self._stage.steps
        last = self._done[-1].page if self._done else "docs/modules/compaction-session.md"
        follow = {1: "long--lost", 2: "long--lost-2"}.get(self._compactions)
        if follow:
            self._player.play(script(follow).replace("${last}", last))

    def _kept(self) -> dict[str, str]:
        often = ", ".join(f"{path} ({times})" for path, times in self._read.most_common(4))
        silent = sum(len(module.silent) for module in self._done)
        last = ", ".join(module.page for module in self._done[-4:])
        following = self._left[0] if self._left else "the second reading of the pages"
        alone = [module.path for module in self._done if not module.callers]
        again = self._compactions > 1
        return {
            "wish": "Please mark modules that are never imported on the index." if again else "",
            "checking": " --port 8417 --strict-anchors" if again else " against the docs server",
            "done": str(len(self._done)),
            "last_pages": last,
            "often": often,
            "errors": _ERRORS[self._compactions],
            "found": f"Public names without a docstring so far: {silent}. Never imported: "
            + (", ".join(alone[-5:]) or "none so far")
            + ".",
            "said": "Questions about the code are only to be written down." if again else "",
            "left": str(len(self._left)),
            "doing": _DOING[bool(self._left)].format(self._done[-1].path),
            "next": f"Go on with {following}, in the same form as the pages before.",
        }


_DOING = {
    True: "The module after {}: read, callers, page, check.",
    False: "Every page has been written; each is read once more beside its module. Last one: {}.",
}
_ERRORS = {
    1: "Nothing failed. The form of a page was settled on the first two modules.",
    2: "The check could not reach the docs server on 8000: it listens on 8417 (docs/README.md).",
    3: "Names without a docstring were not in my notes; they are the empty cells of the pages.",
}
