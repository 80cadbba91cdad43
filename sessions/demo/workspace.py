"""The files the demo's agents work on, and tools that really read, search and change them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from importlib import resources
from pathlib import Path

from sessions.demo.stage import Done

_LINES = 2000


def own_sources() -> dict[str, str]:
    """ContextLab's own engine and store as installed, by path; without migrations and the demo."""
    found = {}
    for package in ("compaction", "sessions"):
        root = Path(str(resources.files(package)))
        for path in sorted(root.rglob("*.py")):
            name = path.relative_to(root.parent).as_posix()
            if not name.startswith(("sessions/demo", "sessions/migrations")):
                text = path.read_text(encoding="utf-8")
                if text.strip():
                    found[name] = text
    return found


def ferry_sources() -> dict[str, str]:
    """The code of a small ferry booking service that exists only in this demo."""
    root = resources.files("sessions.demo").joinpath("ferry")
    found = {}
    for entry in sorted(root.iterdir(), key=lambda e: e.name):
        if entry.name.endswith(".txt"):
            name = entry.name.removesuffix(".txt").replace("--", "/")
            found[name] = entry.read_text(encoding="utf-8")
    return found


def script(name: str) -> str:
    """The text of a script."""
    folder = resources.files("sessions.demo").joinpath("scripts")
    return folder.joinpath(f"{name}.txt").read_text(encoding="utf-8")


class Workspace:
    """A folder in memory. `root` is its apparent path."""

    def __init__(self, root: str, files: Mapping[str, str]) -> None:
        self.root = root
        self.files = dict(files)
        self._committed = dict(files)

    def path(self, name: str) -> str:
        """The absolute path of a file."""
        return f"{self.root}/{name}"

    # Tools

    def read(self, name: str, offset: int = 0, limit: int = 0) -> Done:
        """Numbered lines of a file, `limit` of them from line `offset` on."""
        given: dict[str, object] = {"file_path": self.path(name)}
        if offset:
            given |= {"offset": offset, "limit": limit}
        if name not in self.files:
            return Done("Read", given, f"File does not exist: {self.path(name)}", error=True)
        return Done("Read", given, self.shown(name, offset or 1, limit or _LINES), took=60)

    def shown(self, name: str, start: int, many: int) -> str:
        """Numbered lines in the format of the Read tool."""
        lines = self.files[name].splitlines()[start - 1 : start - 1 + many]
        return "\n".join(f"{number:>6}→{line}" for number, line in enumerate(lines, start))

    def grep(self, pattern: str, under: str = "", mode: str = "content", context: int = 0) -> Done:
        """Matching lines, or the files that contain them (mode `files_with_matches`)."""
        given: dict[str, object] = {"pattern": pattern, "output_mode": mode}
        if under:
            given["path"] = self.path(under)
        if mode == "content":
            given["-n"] = True
        if context:
            given["-C"] = context
        wanted = re.compile(pattern)
        found = {
            name: numbers
            for name in self._under(under)
            if (numbers := _matching(self.files[name], wanted))
        }
        if not found:
            return Done("Grep", given, "No matches found", took=150)
        if mode == "files_with_matches":
            names = "\n".join(self.path(name) for name in found)
            return Done("Grep", given, f"Found {len(found)} files\n{names}", took=150)
        lines = [line for name, at in found.items() for line in self._hits(name, at, context)]
        return Done("Grep", given, "\n".join(lines[:250]), took=180)

    def glob(self, pattern: str) -> Done:
        """Matching paths."""
        names = [self.path(name) for name in self.files if fnmatch(name, pattern)]
        return Done("Glob", {"pattern": pattern}, "\n".join(names) or "No files found", took=90)

    def write(self, name: str, text: str) -> Done:
        """Write a file."""
        given = {"file_path": self.path(name), "content": text}
        known = name in self.files
        self.files[name] = text
        verb = "updated" if known else "created successfully at"
        return Done("Write", given, f"File {verb}: {self.path(name)}", took=80)

    def edit(self, name: str, old: str, new: str, *, everywhere: bool = False) -> Done:
        """Replace a text; refused unless it occurs exactly once."""
        given: dict[str, object] = {
            "file_path": self.path(name),
            "old_string": old,
            "new_string": new,
        }
        if everywhere:
            given["replace_all"] = True
        text = self.files.get(name, "")
        times = text.count(old)
        if times == 0:
            said = f"String to replace was not found in the file.\nString: {old}"
            return Done("Edit", given, said, error=True, took=70)
        if times > 1 and not everywhere:
            said = (
                f"Found {times} places with this string, but replace_all is false. Give more "
                f"context so that one place is meant.\nString: {old}"
            )
            return Done("Edit", given, said, error=True, took=70)
        self.files[name] = text.replace(old, new)
        line = text[: text.index(old)].count("\n") + 1
        shown = self.shown(name, max(line - 3, 1), new.count("\n") + 7)
        return Done("Edit", given, f"{self.path(name)} has been updated. It reads now:\n{shown}")

    def bash(
        self, command: str, output: str, *, took: int = 700, error: bool = False, about: str = ""
    ) -> Done:
        """A command with output from the script."""
        given = {"command": command}
        if about:
            given["description"] = about
        return Done("Bash", given, output, error=error, took=took)

    def diff(self) -> Done:
        """The output of `git diff`."""
        return self.bash("git diff", "".join(self._diff_lines()), took=160)

    def lengths(self, folder: str) -> Done:
        """The output of `wc -l` for a folder."""
        counts = [(self.files[name].count("\n"), name) for name in self._under(folder)]
        lines = [f"{count:>6} {name}" for count, name in counts]
        lines.append(f"{sum(count for count, _ in counts):>6} total")
        return self.bash(f"wc -l $(git ls-files {folder})", "\n".join(lines), took=120)

    # Versions

    def commit(self) -> None:
        """Make the current state the base of later diffs."""
        self._committed = dict(self.files)

    def restore(self, files: Mapping[str, str]) -> None:
        """Restore all files."""
        self.files = dict(files)

    # Parts

    def _under(self, folder: str) -> Iterator[str]:
        for name in sorted(self.files):
            if not folder or name == folder or name.startswith(folder.rstrip("/") + "/"):
                yield name

    def _hits(self, name: str, numbers: list[int], context: int) -> Iterator[str]:
        lines = self.files[name].splitlines()
        last = 0
        for number in numbers:
            start = max(number - context, last + 1, 1)
            if context and last and start > last + 1:
                yield "--"
            for at in range(start, min(number + context, len(lines)) + 1):
                mark = ":" if at in numbers else "-"
                yield f"{name}{mark}{at}{mark}{lines[at - 1]}"
                last = at

    def _diff_lines(self) -> Iterator[str]:
        for name in sorted(self.files):
            before, after = self._committed.get(name, ""), self.files[name]
            if before != after:
                old = f"a/{name}" if before else "/dev/null"
                yield f"diff --git a/{name} b/{name}\n"
                yield from difflib.unified_diff(
                    before.splitlines(True), after.splitlines(True), old, f"b/{name}"
                )


def _matching(text: str, wanted: re.Pattern[str]) -> list[int]:
    return [n for n, line in enumerate(text.splitlines(), 1) if wanted.search(line)]
