"""Which file a call is about, for the usual agents."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context.blocks import FileRef
from compaction.seen.calls import EXTRACTORS, file_of, on_path, shell_read


@pytest.mark.parametrize(
    ("command", "path", "start", "end"),
    [
        ("cat a.py", "a.py", None, None),
        ("cat -n 'a b.py'", "a b.py", None, None),
        ("/bin/cat a.py 2>/dev/null", "a.py", None, None),
        ("nl -ba f.py", "f.py", None, None),
        ("nl -ba f.py | sed -n '3,9p'", "f.py", 3, 9),
        ("sed -n '10,20p' x.go", "x.go", 10, 20),
        ("sed -n 5p x.go", "x.go", 5, 5),
        ("sed -n '7,$p' x.go", "x.go", 7, None),
        ("cd /r && sed -n '1,4p' sub/x", "/r/sub/x", 1, 4),
        ("cd /r; cat /abs/x", "/abs/x", None, None),
        ("head f", "f", 1, 10),
        ("head -20 f", "f", 1, 20),
        ("head -n 5 f", "f", 1, 5),
        ("head --lines=5 f", "f", 1, 5),
        ("cat f | head -n40", "f", 1, 40),
        ("tail -n +30 f", "f", 30, None),
        ("tail -50 f", "f", None, None),
        ("open src/a.py 40", "src/a.py", 40, None),
    ],
)
def test_shell_reads(command: str, path: str, start: int | None, end: int | None) -> None:
    assert shell_read(command) == FileRef(path, "read", start, end)


@pytest.mark.parametrize(
    "command",
    ["", "|", "cat", "cat a b", "cat a | grep x", "cat a | head -3 | wc -l", "cat > a <<EOF", "ls",
     "rm x; cat a", "cat a && ls", "cat $(ls)", "cat 'unclosed", "sed -i s/a/b/ f", "sed -n /x/p f",
     "head -n -5 f", "head -n 0 f", "head -c 5 f", "head -5 f | head -2", "cat a\nls"],
)  # fmt: skip
def test_what_is_no_read_of_one_file_is_unknown(command: str) -> None:
    assert shell_read(command) is None


PATCH = "*** Begin Patch\n*** Update File: a/b.rs\n@@\n-x\n+y\n*** End Patch"


@pytest.mark.parametrize(
    ("tool", "call", "wanted"),
    [
        ("Read", {"file_path": "/a"}, FileRef("/a", "read")),
        ("Read", {"file_path": "/a", "offset": 5, "limit": 10}, FileRef("/a", "read", 5, 14)),
        ("Read", {"file_path": "/a", "limit": "10"}, FileRef("/a", "read", 1, 10)),
        ("Read", {"file_path": "/a", "offset": True}, FileRef("/a", "read")),
        ("Write", {"file_path": "/a", "content": ""}, FileRef("/a", "write")),
        ("Edit", {"file_path": "/a"}, FileRef("/a", "edit")),
        ("MultiEdit", {"file_path": "/a"}, FileRef("/a", "edit")),
        ("NotebookEdit", {"notebook_path": "/n"}, FileRef("/n", "edit")),
        ("Glob", {"pattern": "*"}, FileRef(".", "list")),
        ("Grep", {"pattern": "x", "path": "/src"}, FileRef("/src", "list")),
        ("LS", {"path": "/src"}, FileRef("/src", "list")),
        ("shell", {"command": ["bash", "-lc", "sed -n '1,5p' a"]}, FileRef("a", "read", 1, 5)),
        ("shell", {"command": ["cat", "a b"]}, FileRef("a b", "read")),
        ("exec_command", {"cmd": "nl -ba a"}, FileRef("a", "read")),
        ("exec_command", {"cmd": f"apply_patch <<'E'\n{PATCH}\nE"}, FileRef("a/b.rs", "edit")),
        ("apply_patch", {"input": PATCH}, FileRef("a/b.rs", "edit")),
        ("apply_patch", {"input": PATCH.replace("Update", "Add")}, FileRef("a/b.rs", "write")),
        ("apply_patch", {"input": PATCH.replace("Update", "Delete")}, FileRef("a/b.rs", "delete")),
        ("apply_patch", {"input": "no patch"}, None),
        ("str_replace_editor", {"command": "view", "path": "p"}, FileRef("p", "read")),
        (
            "str_replace_editor",
            {"command": "view", "path": "p", "view_range": [3, -1]},
            FileRef("p", "read", 3),
        ),
        ("str_replace_editor", {"command": "create", "path": "p"}, FileRef("p", "write")),
        ("str_replace_editor", {"command": "insert", "path": "p"}, FileRef("p", "edit")),
        ("open", {"path": "p", "line_number": 12}, FileRef("p", "read", 12)),
        ("execute_bash", {"command": "cat p"}, FileRef("p", "read")),
        ("bash", "cat p", FileRef("p", "read")),
        ("bash", '{"command":"cat p"}', FileRef("p", "read")),
        ("read_file", {"path": "p"}, FileRef("p", "read")),
        ("replace_in_file", {"path": "p"}, FileRef("p", "edit")),
        ("write_to_file", {"path": "p"}, FileRef("p", "write")),
        ("mcp__files__read_file", {"path": "p"}, FileRef("p", "read")),
        ("Task", {"prompt": "x"}, None),
        ("Read", {}, None),
        ("Read", ["a"], None),
    ],
)
def test_calls_of_known_tools(tool: str, call: Any, wanted: FileRef | None) -> None:
    assert file_of(tool, call) == wanted


def test_the_table_can_be_replaced() -> None:
    assert file_of("fetch", {"path": "p"}, {"fetch": on_path("read")}) == FileRef("p", "read")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
_KEYS = st.sampled_from(["path", "file_path", "command", "cmd", "offset", "limit", "view_range"])


@given(st.sampled_from(sorted(EXTRACTORS)), _JSON | st.dictionaries(_KEYS, _JSON) | st.text())
def test_no_input_raises(tool: str, call: Any) -> None:
    found = file_of(tool, call)
    assert found is None or found.path
