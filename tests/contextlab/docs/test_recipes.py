"""The recipes of docs/recipes, followed literally: only their files, in a copy of the project,
and everything accepts what they add."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from contextlab.docs.recipes import FOLDER, RECIPES, files_of, write
from tests.conftest import ROOT

COPIED = ("compaction", "contextlab", "docs", "sessions", "templates", "tests")
LONGEST = 75
"""Lines of a recipe's file."""

TAKEN_BY = {
    "strategy": (
        "tests/contextlab/recipes/strategy.py",
        "tests/compaction/strategies/test_old_failures.py",
        "tests/compaction/policies/test_policy_fields.py::test_every_strategy_says_what_it_does",
        "tests/compaction/advice/test_tuner.py::"
        "test_every_ladder_is_of_a_parameter_within_its_range",
    ),
    "importer": (
        "tests/contextlab/recipes/importer.py",
        "tests/sessions/importers/test_chat_lines.py",
        "tests/sessions/importers/test_detect.py::test_every_format_has_a_sample_and_every_sample_a_format",
        "tests/sessions/importers/test_detect.py::test_the_content_tells_the_format",
        *(
            f"tests/sessions/importers/test_properties.py::{name}[chat-lines.jsonl]"
            for name in (
                "test_damaged_bytes_raise_nothing_else",
                "test_odd_values_raise_nothing_else",
                "test_lines_in_any_order_and_number_are_accounted",
                "test_every_shorter_log_begins_the_longer_one",
                "test_a_log_cut_anywhere_begins_the_whole_one",
                "test_byte_order_mark_and_carriage_returns_change_nothing",
                "test_keys_and_tool_calls_are_distinguished",
            )
        ),
    ),
    "cache-rule": ("tests/contextlab/recipes/cache_rule.py",),
    "page": (
        "tests/contextlab/recipes/page.py",
        "tests/sessions/record/test_models_used.py",
    ),
}
"""Tests that the copy passes with the files of a recipe."""

NEW = {
    ("strategy", "my_own"): "tests/compaction/strategies/test_my_own.py",
    ("importer", "my_own"): "tests/sessions/importers/test_my_own.py",
    ("page", "my_own"): "tests/sessions/record/test_my_own.py",
    ("page", "my_other", "--subject", "tools"): "tests/sessions/tools/test_my_other.py",
}
"""The test that `contextlab new` writes, by its arguments."""

LISTED = {
    "strategy": ("docs/policies/strategies.md", "| `old_failures` |"),
    "importer": ("docs/imports/importing.md", "- `chat-lines`: "),
    "cache-rule": (
        "docs/record/cache.md",
        "| Acme | 2,000 | steps of 1,000 | 10 minutes | no price |",
    ),
}


@dataclass
class Copy:
    """A copy of the project to which files were added."""

    root: Path
    made: dict[str, list[Path]] = field(default_factory=dict)
    """The files of each recipe."""
    stale: str = ""
    """What the check of the lists in docs says before they are made again."""
    said: dict[tuple[str, ...], str] = field(default_factory=dict)
    """What `contextlab new` says, by its arguments."""
    passed: str = ""
    """What pytest says of all that they must pass, a line per test."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """The copy with all recipes, and beside them what the command writes. Their tests run in as
    few processes as can be: most of the time of one goes into its start."""
    root = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("screenshots", "golden")
    for name in COPIED:
        shutil.copytree(ROOT / name, root / name, ignore=ignored)
    for name in ("manage.py", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    copy = Copy(root)
    for kind in RECIPES:
        copy.made[kind] = write(root, kind)
    checked = run(root, "-m", "contextlab.docs.lists", "--check")
    assert checked.returncode == 1
    copy.stale = checked.stderr
    assert run(root, "-m", "contextlab.docs.lists").returncode == 0
    at_once = [test for tests in TAKEN_BY.values() for test in tests]
    commands = [at_once]
    for asked in NEW:
        made = run(root, "-m", "contextlab.cli", "new", *asked)
        assert made.returncode == 0, made.stderr
        copy.said[asked] = made.stdout
        (command,) = re.findall(r"-m pytest (.+)", made.stdout)
        if " -k " in command:  # it selects among all
            commands.append(shlex.split(command))
        else:
            at_once += shlex.split(command)
    for tests in commands:
        passed = run(root, "-m", "pytest", "-vv", "-p", "no:cacheprovider", *tests)
        assert passed.returncode == 0, passed.stdout + passed.stderr
        copy.passed += passed.stdout
    return copy


def run(root: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A command of the copy's own Python modules."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(root),
        "CONTEXTLAB_DATA_DIR": str(root / "var"),
        "DATABASE_URL": "",
        "PYTEST_ADDOPTS": "",
    }
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd or root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("kind", RECIPES)
def test_a_recipe_needs_no_other_file(copy: Copy, kind: str) -> None:
    made = copy.made[kind]
    assert made and all(path.read_text().count("\n") <= LONGEST for path in made)
    others = {path.stem for other in RECIPES if other != kind for path in copy.made[other]}
    text = "\n".join(path.read_text() for path in made)
    assert not [name for name in others if re.search(rf"\b{name}\b", text)]
    linted = [str(path) for path in made if path.suffix == ".py"]
    ruff = run(copy.root, "-m", "ruff", "check", *linted)
    assert ruff.returncode == 0, ruff.stdout
    formatted = run(copy.root, "-m", "ruff", "format", "--check", *linted)
    assert formatted.returncode == 0, formatted.stdout
    for test in TAKEN_BY[kind]:
        assert re.search(rf"^{re.escape(test)}\S* PASSED", copy.passed, re.MULTILINE), test
    if kind in LISTED:
        page, row = LISTED[kind]
        assert page in copy.stale
        assert row in (copy.root / page).read_text()


@pytest.mark.parametrize("asked", NEW)
def test_what_is_written_passes_its_own_test_beside_the_example(
    copy: Copy, asked: tuple[str, ...]
) -> None:
    test = NEW[asked]
    assert test in copy.said[asked].splitlines()
    assert re.search(rf"^{re.escape(test)}\S* PASSED", copy.passed, re.MULTILINE)
    again = run(copy.root, "-m", "contextlab.cli", "new", *asked)
    assert (again.returncode, again.stderr.count("\n")) == (1, 1)
    assert "already exists" in again.stderr


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (("page", "new", "--subject", "tool"), "There is no subject 'tool'. Use one of: account"),
        (("importer", "new", "--subject", "tools"), "Only a page has a --subject."),
    ],
)
def test_a_subject_is_a_folder_of_pages(asked: tuple[str, ...], sentence: str) -> None:
    found = run(ROOT, "-m", "contextlab.cli", "new", *asked)
    assert found.returncode in (1, 2) and found.stderr.startswith(sentence)


@pytest.mark.parametrize("kind", ["strategy", "importer", "page"])
def test_a_new_file_says_nothing_that_only_holds_for_the_example(tmp_path: Path, kind: str) -> None:
    subject = tmp_path / "sessions" / "views" / "record" / "__init__.py"
    subject.parent.mkdir(parents=True)
    subject.touch()
    shutil.copytree(ROOT / FOLDER, tmp_path / FOLDER)
    example = "\n".join(files_of(tmp_path, kind).values())
    found = set(re.findall(r'"""(?:[^":]+: )?([^"]{12,})"""|(?:does=|"help": )"([^"]+)"', example))
    sentences = {text for pair in found for text in pair if text}
    assert len(sentences) >= 2
    new = "\n".join(path.read_text() for path in write(tmp_path, kind, "my_own"))
    assert not [text for text in sentences if text in new]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("other", "This is not a checkout of "), ("Not-a-name", "'Not-a-name' is not a valid name")],
)
def test_elsewhere_nothing_is_written(tmp_path: Path, name: str, sentence: str) -> None:
    found = run(ROOT, "-m", "contextlab.cli", "new", "strategy", name, cwd=tmp_path)
    assert (found.returncode, found.stdout, found.stderr.count("\n")) == (1, "", 1)
    assert found.stderr.startswith(sentence)
    assert list(tmp_path.iterdir()) == []


def test_the_lists_in_docs_are_as_the_records_say() -> None:
    found = run(ROOT, "-m", "contextlab.docs.lists", "--check")
    assert found.returncode == 0, found.stderr
