"""Facts that say nothing about the work: pasted code, written content and built-in names."""

from __future__ import annotations

import re

CONTENT = frozenset(
    {
        "content", "old_string", "new_string", "old_str", "new_str", "file_text", "insert_text",
        "new_source", "edits", "patch", "diff", "todos", "plan", "body",
    }
)  # fmt: skip
"""Call arguments that hold content to write rather than something to look up."""

_BUILT_IN = frozenset(
    {
        "os", "io", "fmt", "ioutil", "filepath", "strings", "strconv", "bytes", "bufio", "regexp",
        "sync", "atomic", "time", "math", "rand", "sys", "re", "json", "shutil", "subprocess",
        "pathlib", "itertools", "functools", "collections", "datetime", "asyncio", "tempfile",
        "console", "object", "array", "promise", "number", "fs", "process", "window", "document",
        "system", "std",
    }
)  # fmt: skip
"""Standard modules and objects of Go, Python, JavaScript and other languages."""

_ENDING = re.compile(r"_(?:tests?|specs?)\.\w{1,5}")
_FENCE = ("```", "~~~")
_PASTED = re.compile(r"(?: {8}|\t| {4}(?![-*+\d ]))")
"""The start of a line that Markdown renders as code; nested lists do not count."""


def is_noise(name: str) -> bool:
    """Return whether a name identifies nothing, like `_test.go` and `/dev/null`."""
    return name == "dev/null" or _ENDING.fullmatch(name) is not None


def built_in(token: str) -> str:
    """Return the name of a standard library function (`writefile` for `os.WriteFile`), else ""."""
    head, dot, name = token.rpartition("/")[2].casefold().partition(".")
    return name if dot and head in _BUILT_IN else ""


def prose(text: str) -> str:
    """Strip pasted code from a person's message: fenced blocks and indented lines.

    An unclosed fence is ignored.
    """
    found: list[str] = []
    fenced: list[str] | None = None
    for line in text.splitlines():
        begin = line.lstrip()[:3]
        if begin in _FENCE:
            if line.count(begin) > 1:
                continue
            fenced = [] if fenced is None else None
        elif fenced is not None:
            fenced.append(line)
        elif not _PASTED.match(line):
            found.append(line)
    return "\n".join([*found, *(fenced or ())])
