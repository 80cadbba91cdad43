"""Chat histories of Aider (Markdown): one file has many sessions."""

from __future__ import annotations

import re

from sessions.importers.importer import Importer
from sessions.importers.naming import stem_of
from sessions.importers.records import Call, Log, Message, Session, Skipped
from sessions.importers.wire import milliseconds, text_block

FORMAT = "aider"

_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$")
_ANSWERED = "(Y)es/(N)o"
"""What the question in an answer to the client has."""

_PROMPTING = frozenset({"/ask", "/architect", "/code", "/context"})
"""Commands whose text the model is sent."""

_MODEL = re.compile(r"> (?:Main model|Model): (\S+)")


def recognises(text: str) -> bool:
    """Whether a text begins with a session's header."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return bool(_START.match(first))


def read(data: bytes, name: str = "") -> Log:
    """Read a history. It has what the screen showed: no prompt of the client, no files, and token
    counts in prose only, so that usage stays unknown."""
    log = Log(FORMAT)
    reader: _ChatReader | None = None
    readers: list[_ChatReader] = []
    for number, line in enumerate(data.decode("utf-8-sig", "replace").split("\n"), start=1):
        line = line.replace("\x00", "\ufffd")
        if found := _START.match(line):
            reader = _ChatReader(found[1], name, log)
            readers.append(reader)
        elif reader is not None:
            reader.take(line, number)
    for reader in readers:
        reader.flush()
    empty = sum(not reader.session.records for reader in readers)
    if empty and empty < len(readers):
        log.problems.append(f"Sessions without any message: {empty}; they were left out.")
    return log.close(reader.session for reader in readers)


class _ChatReader:
    """Collects lines of the user and of the model.

    Aider ends its own lines with two spaces, which distinguishes a heading or quotation of the
    model from a prompt or from output of the client. A response ends with its token counts.
    """

    def __init__(self, started: str, name: str, log: Log) -> None:
        self.session = Session("", agent="aider", title=f"{stem_of(name)} {started}".strip())
        self._log = log
        self._at = milliseconds(started)
        self._kind = ""
        self._lines: list[str] = []
        self._from = 0
        self._calls = 0

    def take(self, line: str, number: int) -> None:
        """Process one line."""
        ours = line.rstrip("\r").endswith("  ")
        if line.startswith("> ") and ours:
            if found := _MODEL.match(line):
                self.session.model = found[1]
            if line.startswith("> Tokens:"):
                self.flush()
            skipped = Skipped(number, "output of the client", "not context")
            self._log.skipped.append(skipped)
            return
        kind = "user" if line.startswith("####") and ours else "model"
        if kind == "model" and not line.strip() and not self._lines:
            return
        if kind != self._kind:
            self.flush()
            self._kind = kind
        self._from = self._from if self._lines else number
        self._lines.append(line.removeprefix("####").removeprefix(" ") if kind == "user" else line)

    def flush(self) -> None:
        """Write what was collected."""
        text = "\n".join(line.rstrip() for line in self._lines).strip()
        self._lines = []
        if not text:
            return
        at = None if self.session.records else self._at
        if self._kind == "user" and _is_for_client(text):
            self._log.skipped.append(Skipped(self._from, "typed for the client", "not context"))
            return
        if self._kind == "user":
            message = Message("user", [text_block(text)], at=at, human=True, line=self._from)
            self.session.records.append(message)
            return
        self._calls += 1
        call = f"call-{self._calls}"
        self.session.records += [
            Message("assistant", [text_block(text)], call=call, at=at, line=self._from),
            Call(call, model=self.session.model, at=at, line=self._from),
        ]


def _is_for_client(text: str) -> bool:
    """Whether a typed text is a command, or the answer to a question, that no model is sent."""
    is_command = text.startswith(("/", "!")) and text.split()[0] not in _PROMPTING
    return is_command or _ANSWERED in text.split("\n", 1)[0]


IMPORTER = Importer(
    name=FORMAT,
    order=5,
    title="Aider",
    files="`.aider.chat.history.md`",
    recognised_by="a first line `# aider chat started at`",
    read=read,
    knows_text=recognises,
)
