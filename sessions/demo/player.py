"""Plays a written script: each directive becomes a message, a thought or a tool call.

A directive is a line that begins with `::`; the text up to the next one is its body. Each tool call
is a separate model call with the thought and text before it; `::+read` and the like join the
previous tool call.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sessions.demo.provider import Piece
from sessions.demo.stage import Done, Stage
from sessions.demo.workspace import Workspace

_MINUTE = 60_000
_TOOLS = frozenset(
    {"read", "grep", "glob", "write", "edit", "bash", "diff", "lengths", "todo", "task", "shell"}
)


@dataclass(frozen=True, slots=True)
class Directive:
    """One directive: name, options before the `--`, rest of the line, and body."""

    name: str
    options: dict[str, str]
    rest: str
    body: str


def parse(text: str) -> Iterator[Directive]:
    """The directives of a script, in order."""
    for part in re.split(r"(?m)^::", text)[1:]:
        line, _, body = part.partition("\n")
        name, _, rest = line.strip().partition(" ")
        options: dict[str, str] = {}
        head, dashes, tail = rest.partition("-- ")
        if dashes and (not head.strip() or "=" in head):
            options = dict(word.split("=", 1) for word in shlex.split(head))
            rest = tail
        yield Directive(name, options, rest.strip(), body.strip("\n"))


class Player:
    """Plays scripts on a stage. `outputs` generates texts too long to write down, and `spawn` plays
    the named sub-agent and returns its report."""

    def __init__(
        self,
        stage: Stage,
        workspace: Workspace,
        outputs: dict[str, Callable[[], str]] | None = None,
        spawn: Callable[[str, str, int], tuple[str, int]] | None = None,
    ) -> None:
        self.stage = stage
        self.workspace = workspace
        self._outputs = outputs or {}
        self._spawn = spawn
        self._think = self._say = ""
        self._wishes: list[Done] = []
        self._children: list[tuple[str, dict[str, str]]] = []
        self._marks: dict[str, tuple[int, dict[str, str]]] = {}

    def play(self, text: str) -> None:
        """Play a whole script."""
        for directive in parse(text):
            self.do(directive)
        self.flush()

    def do(self, directive: Directive) -> None:
        """Play one directive. Raises AttributeError if it is unknown."""
        joined = directive.name.startswith("+")
        name = directive.name.removeprefix("+")
        begins = self._wishes or self._children or name not in _TOOLS
        if begins and not joined and name not in ("think", "say"):
            self.flush()
        getattr(self, f"_do_{name}")(directive)

    def flush(self) -> None:
        """Finish the pending model call, if any."""
        think, say, wishes = self._think, self._say, self._wishes
        self._think, self._say, self._wishes = "", "", []
        if self._children:
            self._delegate(think, say)
        elif think or say or wishes:
            self.stage.step(think, say, wishes)

    def _delegate(self, think: str, say: str) -> None:
        children, self._children = self._children, []
        ids = self.stage.ask(think, say, [Done("Task", given, "") for _, given in children])
        began = self.stage.at
        assert self._spawn is not None
        for id_, (name, given) in zip(ids, children, strict=True):
            report, ended = self._spawn(name, id_, began)
            took = max(ended - self.stage.at, 0)
            self.stage.answer(id_, Done("Task", given, report, took=took))

    # Messages

    def _do_human(self, d: Directive) -> None:
        self.stage.human(d.body)

    def _do_think(self, d: Directive) -> None:
        if self._wishes or self._say or self._children:
            self.flush()
        self._think = d.body

    def _do_say(self, d: Directive) -> None:
        if self._wishes or self._children or self._say:
            self.flush()
        self._say = d.body

    def _do_again(self, _: Directive) -> None:
        self.stage.again = self.stage.steps

    # Tools

    def _do_read(self, d: Directive) -> None:
        name, *lines = d.rest.split()
        offset, limit = (int(lines[0]), int(lines[1])) if lines else (0, 0)
        self._wishes.append(self.workspace.read(name, offset, limit))

    def _do_grep(self, d: Directive) -> None:
        o = d.options
        self._wishes.append(
            self.workspace.grep(
                d.rest, o.get("path", ""), o.get("mode", "content"), int(o.get("context", 0))
            )
        )

    def _do_glob(self, d: Directive) -> None:
        self._wishes.append(self.workspace.glob(d.rest))

    def _do_write(self, d: Directive) -> None:
        self._wishes.append(self.workspace.write(d.rest, d.body + "\n"))

    def _do_edit(self, d: Directive) -> None:
        old, _, new = d.body.partition("\n=====\n")
        if old == d.body:
            old, new = old.removesuffix("\n====="), ""
        everywhere = d.options.get("all") == "yes"
        self._wishes.append(self.workspace.edit(d.rest, old, new, everywhere=everywhere))

    def _do_bash(self, d: Directive) -> None:
        took = float(d.options.get("took", 0.8)) * 1000
        output = self._outputs[d.options["from"]]() if "from" in d.options else d.body
        self._wishes.append(
            self.workspace.bash(
                d.rest.replace("\\n", "\n"),
                output,
                took=int(took),
                error=d.options.get("error") == "yes",
                about=d.options.get("about", ""),
            )
        )

    def _do_shell(self, d: Directive) -> None:
        command = d.rest.replace("\\n", "\n")
        form, _, rest = d.body.partition(" ")
        body = d.body
        if form == "@file":
            body = self.workspace.files[rest].rstrip("\n")
        elif form == "@grep":
            body = self.workspace.grep(rest).output
        failed = " failed" in body
        text = f"Exit code: {int(failed)}\nWall time: 0.4 seconds\nOutput:\n{body}"
        given = {"cmd": command, "workdir": self.workspace.root}
        self._wishes.append(Done("exec_command", given, text, error=failed))

    def _do_diff(self, _: Directive) -> None:
        self._wishes.append(self.workspace.diff())

    def _do_lengths(self, d: Directive) -> None:
        self._wishes.append(self.workspace.lengths(d.rest))

    def _do_todo(self, d: Directive) -> None:
        states = {"x": "completed", "~": "in_progress", " ": "pending"}
        todos = [
            {"content": line[4:], "status": states[line[1]], "activeForm": line[4:]}
            for line in d.body.splitlines()
        ]
        self._wishes.append(Done("TodoWrite", {"todos": todos}, "The list was updated.", took=20))

    def _do_task(self, d: Directive) -> None:
        given = {
            "description": d.rest,
            "prompt": d.body,
            "subagent_type": d.options.get("type", "Explore"),
        }
        self._children.append((d.options["name"], given))

    # Events

    def _do_pause(self, d: Directive) -> None:
        self.stage.idle(int(float(d.rest) * _MINUTE))

    def _do_model(self, d: Directive) -> None:
        self.stage.model = d.rest

    def _do_layers(self, d: Directive) -> None:
        pairs = (word.split("=") for word in d.rest.split())
        self.stage.reload([Piece(name, int(tokens)) for name, tokens in pairs])

    def _do_clear(self, d: Directive) -> None:
        self.stage.clear(self.stage.largest_results(int(d.rest)))

    def _do_mark(self, d: Directive) -> None:
        self._marks[d.rest] = (self.stage.mark(), dict(self.workspace.files))

    def _do_rewind(self, d: Directive) -> None:
        mark, files = self._marks[d.rest]
        self.stage.rewind(mark)
        self.workspace.restore(files)

    def _do_compact(self, d: Directive) -> None:
        self.stage.compact("manual" if d.rest == "manual" else "auto", d.body)
