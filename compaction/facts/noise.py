"""What names a fact without a word about the work: code that is pasted, written or built in."""

from __future__ import annotations

import re

CONTENT = frozenset(
    {
        "content", "old_string", "new_string", "old_str", "new_str", "file_text", "insert_text",
        "new_source", "edits", "patch", "diff", "todos", "plan", "body",
    }
)  # fmt: skip
"""Arguments of calls that hold content, however short: what is written, not what is looked for."""

_BUILT_IN = frozenset(
    {
        "os", "io", "fmt", "ioutil", "filepath", "strings", "strconv", "bytes", "bufio", "regexp",
        "sync", "atomic", "time", "math", "rand", "sys", "re", "json", "shutil", "subprocess",
        "pathlib", "itertools", "functools", "collections", "datetime", "asyncio", "tempfile",
        "console", "object", "array", "promise", "number", "fs", "process", "window", "document",
        "system", "std",
    }
)  # fmt: skip
"""Modules and objects that come with Go, Python, JavaScript and others."""

_ENDING = re.compile(r"_(?:tests?|specs?)\.\w{1,5}")
_FENCE = ("```", "~~~")
_PASTED = re.compile(r"(?: {8}|\t| {4}(?![-*+\d ]))")
"""How lines begin that Markdown takes for code; nested lists are none."""


def is_noise(name: str) -> bool:
    """Whether it names nothing of its own, as `_test.go` and `/dev/null` do."""
    return name == "dev/null" or _ENDING.fullmatch(name) is not None


def built_in(token: str) -> str:
    """The name in a module that comes with a language: `writefile` of `os.WriteFile`; else none."""
    head, dot, name = token.rpartition("/")[2].casefold().partition(".")
    return name if dot and head in _BUILT_IN else ""


def prose(text: str) -> str:
    """A person's message without what is pasted: fenced code, and lines that are indented as
    code. A fence that nothing closes fences nothing."""
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
