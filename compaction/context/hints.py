"""Describe an offloaded text in one line that fits its format; deterministic, without a model."""

from __future__ import annotations

import csv
import json
import re
from collections import deque
from collections.abc import Callable

LOOK_AT = 60_000
"""Code points read from the start of a text; JSON is parsed whole up to four times as many."""

WIDTH = 160
"""Maximum code points of a hint."""

SURE_OF_A_TABLE = 60
"""Lines that must have as many delimiters as the first."""

PAGES = 8
"""Pages of a PDF whose first line the hint quotes."""

LANGUAGES = {
    "bash": "shell", "c": "c", "cc": "c++", "cpp": "c++", "cs": "c#", "css": "css", "go": "go",
    "h": "c", "hpp": "c++", "html": "html", "java": "java", "js": "javascript", "jsx": "javascript",
    "kt": "kotlin", "lua": "lua", "php": "php", "proto": "protobuf", "py": "python", "rb": "ruby",
    "rs": "rust", "scala": "scala", "sh": "shell", "sql": "sql", "svelte": "svelte",
    "swift": "swift", "ts": "typescript", "tsx": "typescript", "vue": "vue", "zsh": "shell",
}  # fmt: skip
IMAGES = frozenset({"png", "jpg", "jpeg", "gif", "webp", "svg", "bmp", "ico"})

# Both match the newline before a line: re finds it two or three times as fast as "^".
_NUMBERED = re.compile(r"\n[ \t]*\*?\d+(?:→|\t|:(?!\d\d:)|\||-(?!\w))[ \t]?")
_SYMBOL = re.compile(
    r"\n[ \t]*+(?:(?:export|default|public|private|protected|static|async|pub(?:\(\w{1,9}\))?"
    r"|abstract|final|local)"
    r"[^\S\n]++)*+"
    r"(?:class|def|func|function|fn|interface|struct|enum|trait|impl|type|module|object)[^\S\n]++"
    r"(?:\([^)\n]{0,60}\)\s*)?([A-Za-z_$][\w$]*+)(?![^\S\n]*+(?:,|as\b))"
)
_ERROR = re.compile(
    r"\n[ \t]{0,20}((?:(?:[\w.]{1,80}\.)?[A-Z]\w{0,60}(?:Error|Exception): (?![Ii]f |[Ww]hen )\S"
    r"|E {2,7}\S|--- FAIL|FAIL(?:ED)?\b[ :\t]"
    r"|(?:ERROR|FATAL|Error|error|fatal|panic)(?:\[\w{1,9}\]| TS\d{1,6})?:\s|npm (?:ERR!|error) "
    r"|make(?:\[\d\])?: \*\*\*)[^\r\n]{0,400}+(?<![,;({]))"
)
"""A line that begins as programs begin an error: in a file, a search or a diff that is shown,
something stands before the word, or code ends the line. "if" follows where docs list errors."""
_PASSED = re.compile(
    r"\b0 (?:tests? )?(?:fail|failed|failing|failures|errors)\b|\btest result: ok\b"
    r"|\b\d{1,7} passed(?: in |, \d{1,7} skipped| \()"
)
"""How a run of tests says that none failed."""
_WRAPPING = re.compile(
    r"\A(?:<(?:returncode|retrieval_status|task_id|task_type|status|exit_code)>[^<\n]{0,80}</\w+>"
    r"|<(?:output|persisted-output|tool_use_error)>|<system-reminder>[^<]{0,600}</system-reminder>"
    r"|(?:Chunk ID|Wall time|Exit code|Output(?=:\n| too large \()|Preview \(first"
    r"|Script (?:completed|failed|running)|Process exited with code|Process running with session"
    r"|Original token count|Total output lines|Warning: truncated output)\b[^\n]{0,300}\n"
    r"|The file \S{1,300} has been updated\.[^\n]{0,200}\n|\n)+"
)
"""What tools write before an output."""

WRAPPED = 1_000
"""Code points from the start of a text in which to look for that."""

_TITLE = re.compile(r"<title[^<>]*>([^<]{1,200})</title>", re.IGNORECASE)
_PAGE_TITLE = re.compile(r"^\W{0,4}Page Title:\s*([^\n]{1,200})", re.MULTILINE)
_PAGE_URL = re.compile(r"^\W{0,4}Page URL:\s*(\S{4,300})", re.MULTILINE)
"""The header that browser tools write above a page."""
_OF_PAGES = re.compile(r"\b[Pp]age \d{1,5} (?:of|/) ?(\d{1,5})\b")
_MEDIA = re.compile(r"\[(image|document)(?: ([\w.+/-]{1,60}))?\]")
_ADDRESS = re.compile(r"https?://[^\s\"'<>)]{4,200}")
_WORD = re.compile(r"\w{3}")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_HEAD = re.compile(r"\"?[A-Za-z_%#][\w .%#/()-]{0,39}\"?")


def one_line(text: str, width: int = WIDTH) -> str:
    """Collapse a text to one line of at most `width` code points; a cut ends in an ellipsis."""
    line = " ".join(text[: width * 8].split())
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def hint(text: str, path: str | None = None) -> str:
    """Describe a text in at most 160 code points; empty for an empty text.

    The path's suffix decides the format if it is known, otherwise the text does: CSV, JSON, source,
    web page, image or PDF, log with its last error, and finally the first line. Hints in stubs
    follow CodeGenius, hints by content type follow MaybeAi; the formats are ours.
    """
    suffix = path.rpartition("/")[2].rpartition(".")[2].lower() if path and "." in path else ""
    text = _WRAPPING.sub("", text[:WRAPPED]) + text[WRAPPED:]
    body = _NUMBERED.sub("\n", f"\n{text[:LOOK_AT]}")[1:]
    if not body.strip():
        return ""
    if media := _MEDIA.match(body):
        return " ".join(filter(None, media.groups()))
    if suffix in IMAGES:
        return "image"
    for form in _forms(suffix):
        line = form(text if form is _json else body)
        if line:
            return one_line(line)
    return one_line(_first_line(body))


def _forms(suffix: str) -> list[Callable[[str], str]]:
    if suffix in ("csv", "tsv"):
        return [_csv]
    if suffix == "json":
        return [_json]
    if suffix == "pdf":
        return [_pdf]
    if suffix in LANGUAGES and suffix != "html":
        return [lambda body: _source(body, LANGUAGES[suffix])]
    if suffix in ("md", "txt", "rst"):
        return []
    return [_json, _web, _csv, _log]


def _first_line(body: str) -> str:
    """Return the first line with a word in it, else the first that is not blank."""
    lines = [line for line in body.splitlines() if line.strip()]
    return next((line for line in lines if _WORD.search(line)), lines[0] if lines else "")


def table(text: str, path: str | None = None) -> tuple[list[str], str] | None:
    """Split a table into its lines, header first, and its delimiter; None if the text is not a
    table.

    The path's suffix takes precedence over the content: source code is never a table.
    """
    suffix = path.rpartition(".")[2].lower() if path else ""
    if suffix in LANGUAGES or suffix in ("json", "md", "pdf", "rst"):
        return None
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 3:
        return None
    mark = max(",\t;|", key=lines[0].count)
    wide = lines[0].count(mark)
    first = lines[1:SURE_OF_A_TABLE]
    uneven = any(line.count(mark) != wide for line in first if '"' not in line)
    if not wide or uneven:
        return None
    if suffix not in ("csv", "tsv") and not _has_header(lines[0].split(mark), first, mark):
        return None
    return lines, mark


def _has_header(heads: list[str], rows: list[str], mark: str) -> bool:
    """Whether the first line names columns, as far as one can tell: short names, each once, above
    a column of numbers. Programs print many lists that have none."""
    if len(set(heads)) < len(heads) or not all(map(_HEAD.fullmatch, map(str.strip, heads))):
        return False
    columns = zip(*(row.split(mark) for row in rows if row.count(mark) == len(heads) - 1),
                  strict=True)  # fmt: skip
    return any(all(_NUMBER.fullmatch(cell.strip()) for cell in column) for column in columns)


def _csv(body: str) -> str:
    found = table(body)
    if found is None:
        return ""
    lines, mark = found
    try:
        rows = list(csv.reader(lines, delimiter=mark))
    except csv.Error:
        return ""
    heads = [head.strip() for head in rows[0]]
    ranges = [_range(head, [row[i] for row in rows[1:] if i < len(row)])
              for i, head in enumerate(heads)]  # fmt: skip
    shown = ", ".join(f"{head}{span}" for head, span in zip(heads, ranges, strict=True))
    return f"csv, {len(rows) - 1} rows: {shown}"


def _range(head: str, cells: list[str]) -> str:
    numbers = [float(cell) for cell in cells if _NUMBER.fullmatch(cell.strip())]
    if not head or not numbers or len(numbers) < len(cells):
        return ""
    return f" {min(numbers):g}–{max(numbers):g}"


def _json(text: str) -> str:
    head = text.lstrip()[:1]
    if head not in ("{", "[") or len(text) > 4 * LOOK_AT:
        return ""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    if isinstance(value, dict):
        return f"json, keys: {', '.join(map(str, value))}"
    first = value[0] if value else None
    keys = f" with {', '.join(map(str, first))}" if isinstance(first, dict) else ""
    return f"json, list of {len(value)}{keys}"


def symbols(source: str) -> list[str]:
    """Return the names of the functions and types that a source text defines, in order."""
    return list(dict.fromkeys(_SYMBOL.findall(f"\n{source}")))


def _source(body: str, language: str) -> str:
    names = symbols(body)
    return f"{language}: {', '.join(names)}" if names else ""


def _pdf(body: str) -> str:
    pages = body.split("\f")
    points = "; ".join(filter(None, (_first_line(page) for page in pages[:PAGES])))
    stated = max((int(number) for number in _OF_PAGES.findall(body)), default=0)
    total = max(len(pages), stated)
    return f"pdf, {total} pages: {points}" if total > 1 else f"pdf: {points}"


def _web(body: str) -> str:
    title = _PAGE_TITLE.search(body) if "Page Title:" in body else None
    if title is None and "<title" in body.lower():
        title = _TITLE.search(body)
    shown = _PAGE_URL.search(body) if "Page URL:" in body else None
    if not title and not shown:
        return ""
    name = title.group(1).strip() if title else ""
    found = _ADDRESS.search(body)
    address = shown.group(1) if shown else found.group(0) if found else ""
    return " ".join(filter(None, ["web page:", name, address]))


def _log(body: str) -> str:
    found = deque(_ERROR.finditer(f"\n{body}"), maxlen=1)
    # A test of a failure prints an error as well, and passes.
    if not found or _PASSED.search(body, found[0].end()):
        return ""
    return f"last error: {found[0].group(1).strip()}"
