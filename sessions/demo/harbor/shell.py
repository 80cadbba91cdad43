"""The workspace as Codex uses it: everything through a shell."""

from __future__ import annotations

from sessions.demo.stage import Done
from sessions.demo.workspace import Workspace

_LINES = 260


class ShellWorkspace(Workspace):
    """A folder in memory, read by `sed` and `rg` and changed by `apply_patch`."""

    def read(self, name: str, offset: int = 0, limit: int = 0) -> Done:
        """Lines of a file, not numbered."""
        start, many = offset or 1, limit or _LINES
        lines = self.files[name].splitlines()[start - 1 : start - 1 + many]
        return self._shell(f"sed -n '{start},{start + many - 1}p' {name}", "\n".join(lines), 90)

    def grep(self, pattern: str, under: str = "", mode: str = "content", context: int = 0) -> Done:
        """Matching lines with their places."""
        found = super().grep(pattern, under, mode, context)
        around = f"-C {context} " if context else ""
        return self._shell(f'rg -n {around}"{pattern}" {under or "."}', found.output, 160)

    def edit(self, name: str, old: str, new: str, *, everywhere: bool = False) -> Done:
        """A patch that replaces whole lines."""
        made = super().edit(name, old, new, everywhere=everywhere)
        removed = "\n".join(f"-{line}" for line in old.splitlines())
        added = "\n".join(f"+{line}" for line in new.splitlines())
        patch = f"*** Begin Patch\n*** Update File: {name}\n@@\n{removed}\n{added}\n*** End Patch"
        said = "Success. Updated the following files:\nM " + name
        if made.error:
            said = f"apply_patch verification failed: expected lines not found in {name}"
        return self._shell(f"apply_patch <<'P'\n{patch}\nP", said, 60, error=made.error)

    def bash(
        self, command: str, output: str, *, took: int = 700, error: bool = False, about: str = ""
    ) -> Done:
        """A command with output from the script; shells have no description of it."""
        del about
        return self._shell(command, output, took, error=error)

    def _shell(self, command: str, output: str, took: int, *, error: bool = False) -> Done:
        said = f"Exit code: {int(error)}\nWall time: {took / 1000:.1f} seconds\nOutput:\n{output}"
        given = {"cmd": command, "workdir": self.root}
        return Done("exec_command", given, said, error=error, took=took)
