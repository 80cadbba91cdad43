"""Read back: offloaded texts are returned unchanged, only to their own session and team."""

from __future__ import annotations

import re

import pytest

from compaction.context.excerpt import ANSWER, BadSelection, Selection
from compaction.tools.read_tool import asked
from sessions.actions.accounts.teams import local_team
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.live.handing_out import read_back as reading
from sessions.actions.live.handing_out.read_back import NothingThere, read_back
from sessions.actions.record.append import append
from sessions.actions.web.apart import NotInTime
from sessions.importers import records
from sessions.models import Replacement, Run, Session, Team
from sessions.models.record.blobs import Blob, DamagedBlob
from sessions.models.record.values import blocks_of, contents, wire_blocks
from tests.sessions.made import count, reads, result, says, session, user

pytestmark = [pytest.mark.django_db, pytest.mark.store]

WHOLE = Selection()


def body(step: int) -> str:
    """The content of the file read at a step."""
    return "".join(f"def handler_{step}_{line}():\n    return {line}\n" for line in range(60))


def stored(steps: int = 14, team: Team | None = None, external_id: str = "s1") -> Session:
    """A session that reads that many files; message 2k requests one, 2k+1 returns it."""
    made: list[records.Record] = [user("Find the port.", key="k")]
    for step in range(1, steps + 1):
        made.append(reads(f"c{step}", f"t{step}", f"src/f{step}.py", key=f"a{step}"))
        made.append(result(f"t{step}", body(step), key=f"b{step}"))
    given = session(*made, external_id=external_id)
    return append(team or local_team(), given, count, source="test").session


def sha(of: Session, seq: int, index: int = 0) -> str:
    return str(of.blocks.get(message__seq=seq, index=index).sha)


def test_the_reference_of_a_stub_gives_the_original() -> None:
    it = stored()
    run = simulate_session(it, "offload-first")
    stubs = [row for row in run.replacements.all() if row.type == "tool_result"]
    assert stubs
    data = contents(it, [row.sha for row in stubs])
    for row in stubs:
        ref = re.search(r"ref (m\d+\.\d+@[0-9a-f]{8})", data[row.sha].decode())
        assert ref is not None
        found = read_back(it, ref[1], WHOLE)
        step = (int(ref[1][1:].partition(".")[0]) - 1) // 2
        assert (found.text, found.total_lines, found.truncated) == (body(step), 120, False)
        assert read_back(it, row.name, WHOLE).text == body(step)


@pytest.mark.parametrize("form", ["{id}@{sha8}", "{id}@{sha}", "{id}", "ref {id}", "{sha8}", "3"])
def test_all_forms_of_a_reference(form: str) -> None:
    it = stored(2)
    ref = form.format(id="m3.0", sha=sha(it, 3), sha8=sha(it, 3)[:8])
    assert read_back(it, ref, WHOLE).text == body(1)


@pytest.mark.parametrize(
    "ref",
    ["m99.0", "m3.7", "m3.0@00000000", "99", "00000000", "", "compact:m1.0-9", "m3.0@", "../m3.0",
     "m3.0\x00", "m٣.0", "9" * 400],
)  # fmt: skip
def test_what_names_nothing_is_said_to_be_nothing(ref: str) -> None:
    with pytest.raises(NothingThere):
        read_back(stored(2), ref, WHOLE)


def test_another_hash_is_named_so_that_it_can_be_put_right() -> None:
    it = stored(2)
    with pytest.raises(NothingThere, match=sha(it, 3)[:8]):
        read_back(it, "m3.0@00000000", WHOLE)


def test_never_another_session_nor_another_team() -> None:
    mine = stored(1)
    team = Team.objects.create(slug="other", name="Other")
    simulate_session(others := stored(14, team, "s2"), "offload-first")
    near = stored(14, external_id="s3")
    name = Replacement.objects.filter(run__session=others).first()
    assert name is not None
    for foreign in (f"m9.0@{sha(others, 9)[:8]}", sha(others, 9), name.name, "9"):
        with pytest.raises(NothingThere):
            read_back(mine, foreign, WHOLE)
    with pytest.raises(NothingThere):
        read_back(near, name.name, WHOLE)


def test_parts_by_lines_pattern_head_and_tail() -> None:
    it = stored(2)
    lines = body(2).splitlines()
    ref, selection = asked({"ref": "m5.0", "lines": "3-4"})
    found = read_back(it, ref, selection)
    assert (found.text, found.first, found.last) == ("\n".join(lines[2:4]), 3, 4)
    assert read_back(it, "m5.0", Selection(head=1)).text == lines[0]
    assert read_back(it, "m5.0", Selection(tail=2)).text == "\n".join(lines[-2:])
    assert read_back(it, "m5.0", Selection(grep=r"_7\(")).text == "15:def handler_2_7():"
    for wrong in (Selection(grep="("), Selection(lines=(121, 130))):
        with pytest.raises(BadSelection):
            read_back(it, "m5.0", wrong)


def test_a_pattern_is_looked_for_in_a_long_text_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process that is killed when it takes too long."""
    lines = [f"line {number}" for number in range(20_000)]
    given = session(user("go"), reads("c1", "t1", "a"), result("t1", "\n".join(lines)))
    it = append(local_team(), given, count, source="test").session
    found = read_back(it, "m3.0", Selection(grep="19999$"))
    assert (found.text, found.first) == ("20000:line 19999", 20_000)
    with pytest.raises(BadSelection, match="not a valid RE2"):
        read_back(it, "m3.0", Selection(grep="("))
    monkeypatch.setattr(reading, "SECONDS", 0.0)
    with pytest.raises(NotInTime):
        read_back(it, "m3.0", Selection(grep="19999$"))
    assert read_back(it, "m3.0", Selection(tail=1)).text == "line 19999"


def test_a_long_text_comes_in_parts_that_say_how_to_go_on() -> None:
    long = "".join(f"{n}: a line\n" for n in range(9_000))
    given = session(user("go"), reads("c1", "t1", "a"), result("t1", long))
    it = append(local_team(), given, count, source="test").session
    whole, found = "", read_back(it, "m3.0", WHOLE)
    while found.truncated:
        text, _, reply = found.text.rpartition("\n[truncated")
        assert len(text) <= ANSWER and f"offset={found.rest['offset']}" in reply  # type: ignore[index]
        whole += text
        found = read_back(it, *asked({"ref": "m3.0", **found.rest}))  # type: ignore[dict-item]
    assert whole + found.text == long


def test_an_image_alone_is_read_back_without_words() -> None:
    pixel = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    image = {"type": "image", "source": pixel}
    said = [{"type": "text", "text": "See"}, image]
    given = session(user("go"), records.Message("user", [image]), records.Message("user", said))
    it = append(local_team(), given, count, source="test").session
    assert [part["type"] for part in read_back(it, "m2.0", WHOLE).content] == ["image"]
    assert [part["type"] for part in read_back(it, "3", WHOLE).content] == ["text", "image"]


def test_calls_and_messages_are_readable() -> None:
    asked_for = {"file_path": "a.py", "content": "one\ntwo\n", "n": 3, "list": [1]}
    uses = {"type": "tool_use", "id": "t1", "name": "Write", "input": asked_for}
    image = {"type": "image", "source": {"media_type": "image/png"}}
    said = records.Message("assistant", [{"type": "text", "text": "Now I write."}, uses], call="c")
    content = [{"type": "text", "text": "half \ud800"}, image]
    gives = {"type": "tool_result", "tool_use_id": "t1", "content": content}
    answer = records.Message("user", [gives])
    given = session(user("go"), said, answer)
    it = append(local_team(), given, count, source="test").session
    written = "file_path: a.py\ncontent:\none\ntwo\n\nn: 3\nlist: [\n 1\n]"
    assert read_back(it, "m2.1", WHOLE).text == written
    assert read_back(it, "m2.1", Selection(lines=(3, 4))).text == "one\ntwo"
    assert read_back(it, "m3.0", WHOLE).text == "half \ufffd\n[image image/png]"
    heads = [f"[m2.0@{sha(it, 2)[:8]} text]", f"[m2.1@{sha(it, 2, 1)[:8]} tool_use Write]"]
    assert read_back(it, "2", WHOLE).text == f"{heads[0]}\nNow I write.\n\n{heads[1]}\n{written}"


def test_a_summary_lists_what_it_replaced_and_each_can_be_read() -> None:
    it = stored(60)
    run = simulate_session(it, "sliding-window")
    summaries = list(run.replacements.filter(kind="summary"))
    assert len(summaries) > 1, "later summaries take up earlier ones"
    listed = read_back(it, summaries[-1].name, WHOLE).text.splitlines()
    assert str(len(listed) - 1) in listed[0]
    refs = [line.partition(" ")[0] for line in listed[1:]]
    first = read_back(it, summaries[0].name, WHOLE).text.splitlines()[1:]
    assert listed[1 : len(first) + 1] == first
    for ref in refs[:6]:
        assert read_back(it, ref, WHOLE).text


def test_a_recorded_summary_is_its_text_and_what_it_replaced() -> None:
    given = session(
        user("one", key="a"), says("c1", "two", key="b"), records.Compaction("auto", key="x"),
        records.Message("user", [{"type": "text", "text": "in short"}], key="s", kind="summary"),
    )  # fmt: skip
    it = append(local_team(), given, count, source="test").session
    text = read_back(it, "m3.0", WHOLE).text
    assert text.startswith("in short\n\n[This summary replaced 2 blocks")
    assert f"m1.0@{sha(it, 1)[:8]} text: one" in text


@pytest.mark.fault("D6")
def test_damaged_bytes_are_never_given_out() -> None:
    it = stored(1)
    other = Blob.of(it.team_id, b'{"type":"text","text":"forged"}')
    Blob.objects.filter(team=it.team, sha=sha(it, 3)).delete()
    Blob.objects.bulk_create(
        [Blob(team_id=it.team_id, sha=sha(it, 3), size=other.size, data=other.data)]
    )
    with pytest.raises(DamagedBlob):
        read_back(it, "m3.0", WHOLE)


def test_wire_blocks_are_the_stored_bytes_in_few_queries(django_assert_num_queries) -> None:
    it = stored(30)
    blocks = list(blocks_of(it, with_text=True))
    with django_assert_num_queries(1):
        wires = wire_blocks(it, blocks)
    assert [wires[b.id]["type"] for b in blocks] == [b.type for b in blocks]
    assert Run.objects.filter(session=it, origin=Run.Origin.SIMULATED).count() == 0
