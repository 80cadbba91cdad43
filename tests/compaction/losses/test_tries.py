"""A try without a lost text guesses another value of its kind or searches for it."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.context.blocks import FileRef
from compaction.losses.tries import Tries, tries_of
from tests.build import Talk

PAGE = "Its admin side answers on port 8417, see docs/cluster.md."


def tries(text: str, *calls: tuple[str, dict[str, Any], bool]) -> Tries:
    """The tries among calls from step 1 on: tool, arguments, whether it failed."""
    talk = Talk()
    shown = talk.user(PAGE)
    for tool, given, error in calls:
        path = given.get("file_path")
        action: Any = "edit" if tool == "Edit" else "read"
        file = FileRef(path, action) if path else None
        talk.respond()
        talk.result(talk.call(tool, given, file=file), "so it is", error=error)
    return tries_of(text, [shown], talk.blocks)


def runs(command: str, *, error: bool = True) -> tuple[str, dict[str, Any], bool]:
    return "Bash", {"command": command}, error


@pytest.mark.parametrize(
    ("text", "call", "kind"),
    [
        ("8417", runs("route berths --port 443"), "guess"),
        ("8417", runs("curl gateway:8080"), "guess"),
        ("8417", ("connect", {"port": 80}, True), "guess"),
        ("port 8417", runs("PORT=8080 serve"), "guess"),
        ("8417", runs("route berths --port 443", error=False), ""),
        ("8417", runs("route berths --port 8417"), ""),
        ("8417", runs("route berths --port 8417 || route berths --port 8080"), ""),
        ("8417", runs("sleep 30"), ""),
        ("8417", runs("make release.1234.5"), ""),
        ("8417", ("Bash", {"command": "make", "timeout": 9000}, True), ""),
        ("8417", ("Grep", {"pattern": "port = ", "path": "units"}, False), "search"),
        ("8417", runs("cd units && grep -rn 8417 .", error=False), "search"),
        ("8417", ("Grep", {"pattern": "report", "path": "units"}, False), ""),
        ("8417", runs("cat port.txt", error=False), ""),
        ("8417", runs("grep -rn port . > found.txt", error=False), ""),
        ("docs/cluster.md", ("Read", {"file_path": "doc/cluster.md"}, True), "guess"),
        ("docs/cluster.md", ("Read", {"file_path": "docs/clusters.md"}, True), "guess"),
        ("docs/cluster.md", runs("build docs/other.md"), ""),
        ("docs/cluster.md", ("Read", {"file_path": "src/main.py"}, True), ""),
        ("docs/cluster.md", ("Edit", {"file_path": "doc/cluster.md"}, True), ""),
        ("docs/cluster.md", ("Glob", {"pattern": "**/cluster.md"}, False), "search"),
        ("HarborGateway", runs("route --port 443"), ""),
        ("HarborGateway", ("Grep", {"pattern": "harborgateway"}, False), "search"),
    ],
)
def test_a_try_is_known_by_what_it_does(
    text: str, call: tuple[str, dict[str, Any], bool], kind: str
) -> None:
    found = tries(text, call)
    assert (found.guesses, found.searches) == ((1,) * (kind == "guess"), (1,) * (kind == "search"))


def test_one_step_between_two_tries_belongs_to_them_unless_it_changes_a_file() -> None:
    guess = runs("route --port 80")
    status = runs("deploy/status gateway", error=False)
    edit = ("Edit", {"file_path": "a.py"}, False)
    assert tries("8417", guess, status, guess, status).between == (2,)
    assert tries("8417", guess, edit, guess).between == ()
    assert tries("8417", guess, status, status, guess).between == ()
    assert tries("8417", guess, status, guess).steps == (1, 2, 3)
