"""File dedupe: what was seen is not sent again, and nothing is called seen that is not there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.context.blocks import Block, FileRef
from compaction.policies.policy import Policy, Step
from compaction.simulation.simulate import simulate
from compaction.strategies.dedupe import Dedupe
from compaction.strategies.offload import Offload
from tests.build import Talk, rough

LINES = [f"line {n} of a file with words enough" for n in range(1, 61)]
POLICY = Policy("d", steps=(Step("dedupe", Dedupe()),))


def _numbered(lines: list[str], first: int = 1) -> str:
    return "\n".join(f"{n:>6}→{line}" for n, line in enumerate(lines, first))


class EditedFile(Talk):
    """An agent that reads and edits one file, whose lines are in `lines`."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = list(LINES)
        self.user("go")

    def read(self, start: int = 0, end: int = 0, **fields: object) -> Block:
        self.respond()
        given = {"file_path": "a.py"} | ({"offset": start} if start else {})
        file = FileRef("a.py", "read", start or None, end or None)
        use = self.call("Read", given, file=file)
        part = self.lines[max(start - 1, 0) : end or None]
        return self.result(use, _numbered(part, start or 1), **fields)

    def edit(self, old: str, new: str, **fields: object) -> Block:
        self.respond()
        given = {"file_path": "a.py", "old_string": old, "new_string": new}
        use = self.call("Edit", given, file=FileRef("a.py", "edit"))
        if not fields.get("error"):
            self.lines = "\n".join(self.lines).replace(old, new, 1).split("\n")
        return self.result(use, "The file was updated.", **fields)

    def wait(self, steps: int) -> None:
        for _ in range(steps):
            self.respond()
            self.result(self.call("Bash", {"command": "ls"}), "a b")


def _edits(talk: Talk, policy: Policy = POLICY) -> dict[str, str]:
    """What stands in the places of readings, by id of the reading."""
    run = simulate(talk.session(), policy, rough)
    made = [e for r in run.revisions for e in r.edits if e.strategy == "dedupe"]
    assert not run.refusals
    return {edit.targets[0]: edit.replacement.text for edit in made if edit.replacement}


def test_an_unchanged_file_is_its_path() -> None:
    work = EditedFile()
    first = work.read()
    again = work.read()
    assert _edits(work) == {
        again.id: "[unchanged: a.py lines 1-60, as shown before: "
        f"in your Read (ref {first.id}@{first.sha[:8]}) | ref {again.id}@{again.sha[:8]}]"
    }


def test_a_part_of_what_was_read_is_its_lines() -> None:
    work = EditedFile()
    first = work.read()
    part = work.read(20, 40)
    answer = _edits(work)[part.id]
    assert answer.startswith("[unchanged: a.py lines 20-40, as shown before: in your Read (ref b2@")
    assert first.id == "b2"


def test_a_change_from_outside_is_a_diff_against_what_stands() -> None:
    work = EditedFile()
    work.read()
    work.lines[29:30] = ["something else", "and more"]
    again = work.read()
    head, *hunks = _edits(work)[again.id].split("\n")
    assert head.startswith("[changed: a.py lines 1-61, diff against what was shown before: in your")
    assert hunks == [
        "@@ -27,7 +27,8 @@", *(f" {line}" for line in LINES[26:29]), f"-{LINES[29]}",
        "+something else", "+and more", *(f" {line}" for line in LINES[30:33]),
    ]  # fmt: skip
    third = work.read()
    assert "30-31 in your Read (ref b4@" in _edits(work)[third.id]
    assert "32-61 in your Read (ref b2@" in _edits(work)[third.id]


def test_a_file_that_became_shorter_is_a_diff() -> None:
    work = EditedFile()
    work.read()
    del work.lines[50:]
    again = work.read()
    assert _edits(work)[again.id].split("\n")[1:] == [
        "@@ -48,13 +48,3 @@",
        *(f" {line}" for line in LINES[47:50]),
        *(f"-{line}" for line in LINES[50:]),
    ]


def test_new_lines_come_with_notes_on_those_that_were_seen() -> None:
    work = EditedFile()
    work.read(1, 30)
    more = work.read(11, 50)
    head, note, *rows = _edits(work)[more.id].split("\n")
    assert head.startswith("[partly shown before: a.py lines 11-50 | ref b4@")
    assert note.startswith("[lines 11-30 unchanged: in your Read (ref b2@")
    assert rows == _numbered(LINES[30:50], 31).split("\n")


def test_the_agents_own_edits_count_as_seen() -> None:
    work = EditedFile()
    first = work.read()
    work.edit(LINES[9], f"{LINES[9]}, changed\nand a new line")
    again = work.read()
    answer = _edits(work)[again.id]
    assert answer.startswith("[unchanged: a.py lines 1-61, as shown before: 1-9 in your Read")
    assert "10-11 in your Edit (ref b3@" in answer
    assert f"12-61 in your Read (ref {first.id}@{first.sha[:8]}) as lines 11-60" in answer


def test_an_edit_that_failed_changed_nothing() -> None:
    work = EditedFile()
    work.read()
    work.edit(LINES[9], "other", error=True)
    again = work.read()
    assert "[unchanged: a.py lines 1-60, as shown before: in your Read" in _edits(work)[again.id]


def test_what_the_agent_wrote_it_has_seen() -> None:
    work = EditedFile()
    work.respond()
    given = {"file_path": "a.py", "content": "\n".join(LINES) + "\n"}
    work.result(work.call("Write", given, file=FileRef("a.py", "write")), "written")
    again = work.read()
    assert "[unchanged: a.py lines 1-60, as shown before: in your Write" in _edits(work)[again.id]


def test_a_file_that_a_person_attached_was_seen() -> None:
    work = EditedFile()
    text = _numbered(LINES)
    work.add(text, role="user", type="text", kind="file", file=FileRef("a.py", "read"))
    again = work.read()
    assert "as shown before: in your message (ref b1@" in _edits(work)[again.id]


def test_what_has_left_is_sent_again() -> None:
    work = EditedFile()
    work.read()
    work.wait(12)
    again = work.read()
    policy = replace(POLICY, steps=(*POLICY.steps, Step("offload", Offload())))
    assert again.id in _edits(work)
    assert _edits(work, policy) == {}


def test_what_a_note_rests_on_stays_as_long_as_the_note_is_young() -> None:
    work = EditedFile()
    first = work.read()
    work.wait(3)
    again = work.read()
    work.wait(16)
    policy = replace(POLICY, steps=(*POLICY.steps, Step("offload", Offload(batch=1))))
    run = simulate(work.session(), policy, rough)
    gone = {e.targets[0]: r.step for r in run.revisions for e in r.edits if e.strategy != "dedupe"}
    assert gone[first.id] == again.born + 5
    assert not simulate(work.session(), replace(POLICY, steps=(Step("dedupe", Dedupe(within=2)),)),
                        rough).revisions  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [{"pinned": True}, {"error": True}, {"file": FileRef("a.py", "list")}, {"tool": "Skill"}],
)
def test_what_is_sent_whole(fields: dict[str, object]) -> None:
    work = EditedFile()
    work.read()
    work.read(**fields)
    assert _edits(work, Policy("d", steps=(Step("dedupe", Dedupe(exclude=("Skill",))),))) == {}


def test_pictures_small_files_and_other_paths_are_sent_whole() -> None:
    work = EditedFile()
    for text in ("[image image/png]", "short", "[image image/png]", "short"):
        work.respond()
        use = work.call("Read", {"file_path": "p"}, file=FileRef("p", "read"))
        work.result(use, text, tokens=1_500)
    work.respond()
    use = work.call("Read", {"file_path": "q"}, file=FileRef("q", "read"))
    work.result(use, _numbered(LINES))
    assert list(_edits(work)) == ["b8"]


def test_a_tail_has_no_line_numbers_to_compare() -> None:
    work = EditedFile()
    for command in ("cat a.py", "tail -60 a.py"):
        work.respond()
        use = work.call("Bash", {"command": command}, file=FileRef("a.py", "read"))
        work.result(use, "\n".join(LINES))
    assert _edits(work) == {}


def test_readings_that_arrive_together_rest_on_the_first() -> None:
    work = EditedFile()
    work.respond()
    uses = [work.call("Read", {"n": n}, file=FileRef("a.py", "read")) for n in range(3)]
    results = [work.result(use, _numbered(LINES)) for use in uses]
    answer = _edits(work)
    assert list(answer) == [results[1].id, results[2].id]
    assert all(f"(ref {results[0].id}@" in text for text in answer.values())
