"""Tool calls that only read: the same call or a reference can show their result again."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from functools import lru_cache

from compaction.context.blocks import Block
from compaction.context.stubs import arguments
from compaction.seen.calls import LONGEST_COMMAND, command_of

READING = (
    # tools: Claude Code, OpenHands, SWE-agent, Cline, Gemini CLI, Copilot, Cursor, opencode
    "codebase_search", "file_search", "find_file", "glob", "grep", "grep_search", "list",
    "list_dir", "list_directory", "list_files", "ls", "notebookread", "open", "read", "read_back",
    "read_file", "read_files", "read_many_files", "search_dir", "search_file", "search_files",
    "view",
    # programs that shell tools run, and what they are piped through
    "ag", "awk", "bat", "cat", "cd", "column", "cut", "echo", "egrep", "fd", "fgrep", "file",
    "find", "git blame", "git diff", "git grep", "git log", "git show", "git status", "head", "jq",
    "less", "more", "nl", "pwd", "rg", "sed -n", "sort", "stat", "tail", "tr", "tree", "uniq",
    "wc", "xargs cat", "xargs grep", "xargs wc",
)  # fmt: skip
"""Tools, and programs with their first argument where it matters, that only read (read, head and
grep follow MaybeAi; `read_back` and similar tools are our choice)."""

_ENDS = frozenset({"|", "||", "&&", ";", "&", "|&"})


def reads(use: Block | None, names: Collection[str]) -> bool:
    """Return whether a tool call does nothing but what these names cover.

    Names are compared in lower case, without an MCP prefix. A shell command must consist of listed
    programs only, an editor is judged by its command. Anything that writes a file returns False.
    """
    if use is None or not use.tool:
        return False
    if use.tool.lower().rsplit("__", 1)[-1] in names:
        return True
    given = arguments(use)
    command = command_of(given) if given is not None else use.text
    programs = _programs(command) if command else ()
    return bool(programs) and all(any(name in names for name in one) for one in programs)


@lru_cache(maxsize=4096)
def _programs(command: str) -> tuple[tuple[str, ...], ...]:
    """Return each program of a command line by its name, alone and with its first argument.

    Empty if the line cannot be parsed, or writes to a file.
    """
    if len(command) > LONGEST_COMMAND:
        return ()
    found: list[tuple[str, ...]] = []
    for line in command.strip().splitlines():
        parts = _parts(line)
        if parts is None:
            return ()
        for words in parts:
            name = words[0].rsplit("/", 1)[-1]
            found.append((name, f"{name} {words[1]}") if len(words) > 1 else (name,))
    return tuple(found)


def _parts(line: str) -> list[list[str]] | None:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return None
    parts: list[list[str]] = [[]]
    for place, word in enumerate(words):
        if word in _ENDS:
            parts.append([])
        elif _writes(words, place) or word.startswith(("(", ")", "<<")):
            return None
        else:
            parts[-1].append(word)
    return [words for words in parts if words]


def _writes(words: list[str], place: int) -> bool:
    return words[place] in (">", ">>") and words[place + 1 : place + 2] != ["/dev/null"]
