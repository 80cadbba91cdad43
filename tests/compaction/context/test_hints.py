"""Hints: one line that says what an offloaded text is, and nothing that it is not."""

import pytest

from compaction.context.blocks import FileRef
from compaction.context.hints import hint
from compaction.context.stubs import result_stub
from tests.build import Talk


@pytest.mark.parametrize(
    ("path", "text", "wanted"),
    [
        (None, "", ""),
        (None, " \n\n", ""),
        ("a.csv", "x,y,who\n1,5,a\n3,-2.5,b\n", "csv, 2 rows: x 1–3, y -2.5–5, who"),
        (None, "a;b\n1;2\n3;4\n", "csv, 2 rows: a 1–3, b 2–4"),
        (None, '{"k": 1, "z": [2]}', "json, keys: k, z"),
        ("p.json", '[{"id": 1}, {"id": 2}]', "json, list of 2 with id"),
        ("p.json", "[]", "json, list of 0"),
        ("p.json", "{broken", "{broken"),
        (None, "start\nERROR: disk full\nbye", "last error: ERROR: disk full"),
        (None, "all\nwell", "all"),
        ("m.go", "package m\nfunc (s *S) Run() {}\ntype S struct {}\n", "go: Run, S"),
        ("m.ts", "export async function go() {}\nexport class A {}", "typescript: go, A"),
        ("m.rs", "pub fn a() {}\nimpl B {}", "rust: a, B"),
        ("m.py", "x = 1", "x = 1"),
        ("notes.md", "# Title\nerror: none", "# Title"),
        ("omp.bash", "}\nexport A=1", "export A=1"),
        ("m.ts", "import {\n  type A,\n  type B as C,\n} from 'b'\nclass D {}", "typescript: D"),
        ("m.lua", "end))\nlocal function run()", "lua: run"),
        ("m.rs", "*12|pub(super) fn a() {}\n 13|}", "rust: a"),
        ("m.go", "20-\tEmail: c.Email,\n21:func Run() {\n22-}", "go: Run"),
        (None, "12:30:01 started\n12:30:02 ended", "12:30:01 started"),
        (None, "2026-01-05 started", "2026-01-05 started"),
        ("pic.PNG", "anything", "image"),
        ("pic.png", "[image image/png]", "image image/png"),
        (None, "[document application/pdf]", "document application/pdf"),
        ("e.pdf", "Page 2 of 50\nRevenue grew", "pdf, 50 pages: Page 2 of 50"),
        (
            None,
            "- Page URL: https://x.org/b\n- Page Title: Home\n",
            "web page: Home https://x.org/b",
        ),
        ("d.pdf", "Report\n\fpage two\f", "pdf, 3 pages: Report; page two"),
        (None, "<title> Home </title> https://x.org/a b", "web page: Home https://x.org/a"),
        (None, "w" * 500, "w" * 159 + "…"),
    ],
)
def test_hints(path: str | None, text: str, wanted: str) -> None:
    assert hint(text, path) == wanted


@pytest.mark.parametrize(
    "said",
    ["Error: no", "ERROR: full", "error[E0308]: types", "src.errors.SomeError: no such key",
     "fatal: not a repository", "panic: nil map", "--- FAIL: TestRun (0.01s)", "FAILED tests/a.py",
     "E   AssertionError: 1", f"Error: {'w' * 90}\r", "npm ERR! code 1",
     "make: *** [test] Error 2", "FAIL\tpkg/a\t0.2s"],
)  # fmt: skip
def test_a_line_that_begins_like_an_error_is_the_last_error(said: str) -> None:
    assert hint(f"all\nwell\n{said}\nbye") == f"last error: {' '.join(said.split())}"


@pytest.mark.parametrize(
    "shown",
    ["a.go:12: return fmt.Errorf('failed')", "+    verdict: 'fail'", " 0 fail", "✗ ttl",
     "@@ -1,2 +1,2 @@ func R() error {", "fix: failure of init (#12)", "checks.Error(",
     "log.Error(err)", "1290 pass, 0 failed", "errors: []", "panic::set_hook(1)", "error::E",
     "Do not run the failed command again.", "  error: string | null;", "error: message,\r",
     "failOnError: schema,", "clearError: () => void", "Error::TooLarge(MAX)",
     "        PermissionError: if the worker cannot be signalled", "ValueError: If empty."],
)  # fmt: skip
def test_what_only_mentions_errors_is_none(shown: str) -> None:
    assert hint(f"all\n{shown}\n{shown}") == "all"


@pytest.mark.parametrize(
    "said", [" 7 pass\n 0 fail", "test result: ok. 7 passed; 0 failed", "7 passed in 1 s"]
)
def test_an_error_that_a_passing_test_printed_is_none(said: str) -> None:
    assert hint(f"all\nerror: no connection\n{said}") == "all"
    assert hint(f"all\n{said}\nerror: exit code 1") == "last error: error: exit code 1"


@pytest.mark.parametrize(
    "text",
    ["title:\tBroken\nstate:\tOPEN\nauthor:\tann\n", "Yes, it is.\nNo, not yet.\nWell, then.\n",
     "a\tb\n" * 20 + "and then prose\n"],
)  # fmt: skip
def test_pairs_of_words_are_no_table(text: str) -> None:
    assert not hint(text).startswith("csv")


@pytest.mark.parametrize(
    "wrapping",
    ["<returncode>0</returncode>\n<output>\n", "The file a.py has been updated. See below:\n",
     "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n",
     "Script completed\nWall time 0.5 seconds\nOutput:\n\nWarning: truncated output (original "
     "token count: 9)\nTotal output lines: 7\n\n",
     "Chunk ID: 1\nProcess running with session ID 7\nOriginal token count: 3\nOutput:\n",
     f"<persisted-output>\nOutput too large (9KB). Full output saved to: {'/a' * 70}\n\n"
     "Preview (first 2KB):\n",
     "<retrieval_status>success</retrieval_status>\n\n<task_id>b</task_id>\n\n<output>\n",
     "<system-reminder>This is a week old.</system-reminder>\n1\t", "<tool_use_error>"],
)  # fmt: skip
def test_what_tools_write_before_an_output_is_not_the_hint(wrapping: str) -> None:
    assert hint(f"{wrapping}total 4") == "total 4"


@pytest.mark.parametrize(
    "text", ["Output directory: /a\nb", "Warning: 3 files\nb", "<name>a</name>"]
)
def test_a_line_that_only_begins_as_a_tool_does_is_the_hint(text: str) -> None:
    assert hint(text) == text.split("\n")[0]


def test_a_hint_survives_hostile_text() -> None:
    for text in ("[" * 100_000, '{"a":' * 50_000, "\x00" * 500, "\ud800" * 500, "," * 90_000):
        assert len(hint(text)) <= 160


@pytest.mark.parametrize(
    ("error", "wanted"), [(False, "| python: run |"), (True, "| Not found in file. def run |")]
)
def test_the_answer_of_a_failed_call_is_not_the_file_it_names(error: bool, wanted: str) -> None:
    text = "Not found in file. def run" if error else "def run():\n    pass"
    talk = Talk()
    use = talk.call("Edit", {"path": "a.py"}, file=FileRef("a.py", "edit"))
    block = talk.result(use, f"{text}\ndef run():\n", error=error)
    assert wanted in result_stub(block, use)
