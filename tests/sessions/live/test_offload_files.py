"""Offloads as files over the API: paths in contexts, the names to write, and their content."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from sessions.actions.live.handing_out.offload_files import reference_in
from sessions.api.live import last_context
from sessions.models import Blob, Block
from tests.sessions.live.test_steps import STEPS, USAGE, said
from tests.sessions.memory.test_shares import work
from tests.sessions.programs import Program, assert_problem

pytestmark = [pytest.mark.django_db, pytest.mark.store, pytest.mark.usefixtures("jobs_wait")]

LONG = "".join(f"line {number}\n" for number in range(20_000))
PATH = re.compile(r"ref /off/run/([^\s\]|\"]+)\]")
OFF = {"offloads": "/off/run/"}


def turn(number: int, content: Any = LONG) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "make"}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": content}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def names(context: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(PATH.findall(json.dumps(context["messages"]).replace('\\"', '"'))))


def test_a_context_names_files_and_their_content_is_whole(program: Program):
    first = program.post(STEPS, {"messages": [said("Go."), *turn(1)], **OFF})
    [name] = first["files"]
    assert names(first) == [name]
    data = program.ask("GET", f"/sessions/run/offloads/{name}")
    assert (data.status_code, data.content.decode()) == (200, LONG)
    assert data["Content-Type"] == "application/octet-stream"
    assert (data["Cache-Control"], data["X-Content-Type-Options"]) == ("no-store", "nosniff")
    assert program.get(f"/sessions/run/content/{name}?tail=1")["text"] == "line 19999"
    plain = program.get("/sessions/run/context")
    assert plain["files"] == [] and not names(plain)
    assert name.removesuffix(".txt") in json.dumps(plain["messages"])


def test_since_lists_only_what_is_new_and_bytes_stay(program: Program):
    first = program.post(STEPS, {"messages": [said("Go."), *turn(1)], **OFF})
    again = {"since": first["context_id"], "usage": USAGE, "context_id": first["context_id"]}
    second = program.post(STEPS, {"messages": turn(2, f"two {LONG}"), **again, **OFF})
    assert len(second["files"]) == 1 and second["keep"] >= 2
    last_context._last.clear()
    whole = program.get("/sessions/run/context?offloads=/off/run")
    assert whole["files"] == [*first["files"], *second["files"]]
    made = program.get(f"/sessions/run/context?context_id={second['context_id']}&offloads=/off/run")
    assert made["messages"] == whole["messages"], "the same without what the process knew"
    elsewhere = program.get("/sessions/run/context?offloads=off")
    assert json.dumps(elsewhere["messages"]) == json.dumps(whole["messages"]).replace(
        "/off/run/", "off/"
    )


@pytest.mark.parametrize("format", ["openai", "pairs", "blocks"])
def test_every_format_names_them(program: Program, format: str):
    program.post(STEPS, {"messages": [said("Go."), *turn(1)]})
    made = program.get(f"/sessions/run/context?format={format}&offloads=/off/run")
    [name] = made["files"]
    assert f"ref /off/run/{name}]" in json.dumps(made)


def test_the_tokens_of_paths_count_until_usage_is_reported(program: Program):
    first = program.post(STEPS, {"messages": [said("Go."), *turn(1)]})
    plain = program.get("/sessions/run/context")["tokens"]
    more = program.get("/sessions/run/context?offloads=/off/run")["tokens"] - plain
    assert 20 < more < 60, "a sentence in the tool, and one path"
    usage = {"input_tokens": 2000, "output_tokens": 10}
    reported = {"usage": usage, "context_id": first["context_id"]}
    program.post(STEPS, {"messages": [{"role": "assistant", "content": "Done."}], **reported})
    program.post(STEPS, {"messages": [said("Go on.")]})
    plain = program.get("/sessions/run/context")["tokens"]
    assert program.get("/sessions/run/context?offloads=/off/run")["tokens"] == plain


def test_what_cannot_be_read_keeps_its_reference(program: Program):
    program.post(STEPS, {"messages": [said("Go."), *turn(1), *turn(2, f"two {LONG}")]})
    row = Block.objects.filter(type="tool_result").order_by("position").first()
    assert row is not None
    Blob.objects.filter(sha=row.sha).delete()
    last_context._last.clear()
    made = program.get("/sessions/run/context?offloads=/off/run")
    assert len(made["files"]) == 1
    assert f"ref m{row.message.seq}.0@{row.sha[:8]}]" in json.dumps(made["messages"])


def test_wrong_names_and_folders(program: Program, reader: Program):
    program.post(STEPS, {"messages": [said("Go."), *turn(1)]})
    [name] = program.get("/sessions/run/context?offloads=o")["files"]
    assert reader.ask("GET", f"/sessions/run/offloads/{name}").status_code == 200
    stem = name.removesuffix(".txt")
    for wrong in (stem, f"{stem}.png", f"{stem}-1.png", "m9.0@00000000.txt", "x", "share-1.txt",
                  f"{stem[:-1]}g.txt", "..", "%2e%2e%2fx", "share-1-.txt", "-1.txt"):  # fmt: skip
        assert program.ask("GET", f"/sessions/run/offloads/{wrong}").status_code == 404, wrong
    for folder in ("a b", 'a"b', "a\\b", "a]b", "x" * 251, "a\nb"):
        body = {"messages": [], "offloads": folder}
        assert_problem(program.ask("POST", STEPS, body), 422)


def test_shares_are_files_with_secrets_masked(program: Program):
    for name, task in (("finder", "search"), ("reader", "docs")):
        program.ask("PUT", f"/sessions/{name}", {"agent": name, "task": task})
    program.post("/sessions/reader/messages", {"messages": [said("Write the docs.")]})
    program.post("/subscriptions", {"session": "reader", "kind": "task", "value": "search"})
    found = [{"type": "text", "text": "port 8080, ann@acme.io"}]
    program.post("/sessions/finder/messages", {"messages": [said("Find it."), *turn(1, found)]})
    given = {"summary": "The port is found.", "key": "port"}
    share = program.post("/sessions/finder/shares", given)["id"]
    work("share")
    made = program.get("/sessions/reader/context?offloads=/off/run")
    whole, one = made["files"]
    assert whole == f"share-{share}.txt" and one.startswith(f"share-{share}-m")
    end = made["messages"][-1]["content"][-1]["text"]
    assert f'<result ref="/off/run/{one}">' in end and f'<share ref="/off/run/{whole}"' in end
    for name in (whole, one):
        ref = reference_in(name)
        read = program.get(f"/sessions/reader/content/{ref}")["text"]
        assert program.ask("GET", f"/sessions/reader/offloads/{name}").content.decode() == read
        assert "ann@acme.io" not in read
    assert "[EMAIL_1]" in read


@pytest.mark.parametrize(
    ("name", "ref"),
    [
        ("m3.0@ab12cd34.txt", "m3.0@ab12cd34"),
        ("/a/b c/m3.0@ab12cd34-12.png", "m3.0@ab12cd34"),
        ("share-12.txt", "share:12"),
        ("share-12-m3.0@ab12cd34.jpg", "share:12:m3.0@ab12cd34"),
        ("m3.0@ab12cd34", "m3.0@ab12cd34"),
        ("m3.0", "m3.0"),
        ("notes.txt", "notes.txt"),
        (".txt", ".txt"),
        ("", ""),
    ],
)
def test_what_the_name_of_a_file_means(name: str, ref: str):
    assert reference_in(name) == ref
