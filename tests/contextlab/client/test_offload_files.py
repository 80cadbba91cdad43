"""What left the context stands as files in a folder, for the agent's own tools."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import anthropic
import pytest

from contextlab.client import ContextLab, wrap
from contextlab.client.offload_files import OffloadFiles
from tests.contextlab.client.test_client import claude, lab, model
from tests.contextlab.client.test_reading_back import (
    IMAGE,
    LOG,
    PIXEL,
    WITH,
    bare,
    history,
    result,
    script,
    use,
)
from tests.provider import Answer, Provider, Text

__all__ = ["claude", "lab", "model", "script"]

Json = dict[str, Any]

PATH = re.compile(r"ref ([^\s\]|\"]+\.(?:txt|png))\]")
REF = re.compile(r"ref m\d+\.\d+@[0-9a-f]{8}")


def paths(body: Json) -> list[str]:
    return list(dict.fromkeys(PATH.findall(json.dumps(body["messages"]).replace('\\"', '"'))))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_an_agent_opens_what_a_stub_names(
    lab: ContextLab,
    model: Provider,
    claude: anthropic.Anthropic,
    script: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(tmp_path)

    def opens(body: Json) -> Answer:
        [path] = paths(body)
        return Answer((use("t2", "Bash", command=f"cat {path}"),), "tool_use")

    script += [opens, Text(LOG[-20:]), Text("Bye.")]
    client = wrap(claude, session="files", server=lab, offloads=".offloads")
    talk = history()
    reply = client.messages.create(messages=talk, **WITH)
    path = reply.content[0].input["command"].split()[1]
    assert path.startswith(".offloads/files/m4.0@") and path.endswith(".txt")
    read = Path(path).read_text(encoding="utf-8")
    assert read == LOG, "whole, though read_back gives such a text in parts"
    assert (mode(Path(path)), mode(Path(path).parent), mode(Path(".offloads"))) == (
        0o600, 0o700, 0o700,
    )  # fmt: skip
    assert Path(".offloads/.gitignore").read_text() == "*\n"
    talk += [
        {"role": "assistant", "content": reply.content},
        result("t2", {"content": "line 0"}),
    ]
    talk += [
        {"role": "assistant", "content": client.messages.create(messages=talk, **WITH).content}
    ]
    client.messages.create(messages=[*talk, {"role": "user", "content": "Thanks."}], **WITH)
    assert not model.refused
    for before, after in zip(model.bodies, model.bodies[1:], strict=False):
        known = bare(before["messages"])
        assert json.dumps(bare(after["messages"])[: len(known)]) == json.dumps(known)
        assert json.dumps(after["tools"]) == json.dumps(before["tools"])
    assert "other tools" in model.bodies[0]["tools"][-1]["description"]


def test_the_path_in_a_stub_can_be_read_back(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic, script: list[Any], tmp_path: Path
):
    def reads(body: Json) -> Answer:
        return Answer((use("r1", "read_back", ref=paths(body)[0], tail=1),), "tool_use")

    script += [reads, Text("Done.")]
    client = wrap(claude, session="both ways", server=lab, offloads=tmp_path / "off")
    client.messages.create(messages=history(), **WITH)
    answered = model.bodies[1]["messages"][-1]["content"][0]
    assert answered["content"][0]["text"] == LOG.splitlines()[-1]
    [folder] = [one for one in (tmp_path / "off").iterdir() if one.is_dir()]
    assert re.fullmatch(r"both_ways-[0-9a-f]{8}", folder.name)
    assert lab.session("both ways").read_back(paths(model.bodies[0])[0], head=1) == "line 0: kelp 0"


def test_every_stub_names_a_file_with_what_read_back_gives(lab: ContextLab, tmp_path: Path):
    document = {
        "steps": [
            {"strategy": "externalise", "parameters": {"over": 200, "head": 100, "tail": 50}},
            {"strategy": "offload", "parameters": {"age": 1, "batch": 1, "minimum": 1}},
        ]
    }
    lab.request("PUT", "policies/files-property", {"document": document})
    session = lab.session("every", policy="files-property", offloads=tmp_path)
    contents: list[Any] = [
        "short " * 100,
        LOG,
        [{"type": "text", "text": "one\ntwo é " * 50}, IMAGE],
        [IMAGE, IMAGE],
        "ref m1.0@00000000 quoted " * 40,
        "\U0001f600 emoji \r\n kept \t" * 30,
    ]
    session.append({"role": "user", "content": "Go."})
    seen: dict[str, bytes] = {}
    for at, content in enumerate(contents * 2):
        call = use(f"t{at}", "Bash", command=f"make {at}", note="long " * 100)
        context = session.step(
            [{"role": "assistant", "content": [call]}, result(f"t{at}", {"content": content})]
        )
        for path in paths(context.request):
            data = Path(path).read_bytes()
            assert seen.setdefault(path, data) == data
    folder = tmp_path / "every"
    assert len(seen) > 12
    for path, data in seen.items():
        content = lab.request("GET", f"sessions/every/content/{Path(path).name}")["content"]
        pictures = [one for one in content if one["type"] == "image"]
        if path.endswith(".png"):
            assert [one["source"]["data"] for one in pictures] == [base64.b64encode(data).decode()]
            continue
        beside = sorted(folder.glob(f"{Path(path).stem}-*.png"))
        assert [one.read_bytes() for one in beside] == [base64.b64decode(PIXEL)] * len(pictures)
        text = data.decode()
        for one in beside:
            text = text.replace(f"[image {one.name}]", "[image image/png]")
        whole = lab.request("GET", f"sessions/every/content/{Path(path).name}")["text"]
        cut = whole.find("\n[truncated: ")
        assert text == whole or (cut > 0 and text.startswith(whole[:cut]))
    last = json.dumps(context.request["messages"])
    assert not REF.search(last.replace("m1.0@00000000", "")), "no stub names a reference alone"
    assert {one.name for one in folder.iterdir()} >= {Path(path).name for path in seen}
    again = session.context()
    assert again.messages == context.messages
    known = session.context(at=context.step)
    assert known.messages == context.messages


def test_only_new_files_are_fetched(
    lab: ContextLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fetched: list[str] = []
    get = ContextLab.download

    def download(server: ContextLab, address: str) -> bytes:
        fetched.append(address.rpartition("/")[2])
        return get(server, address)

    monkeypatch.setattr(ContextLab, "download", download)
    session = lab.session("new ones", offloads=tmp_path)
    answers = []
    for at in range(4):
        said = history(f"{at} {LOG}")[1:]
        said[0]["content"][0]["id"] = said[1]["content"][0]["tool_use_id"] = f"t{at}"
        answers.append(session.step(said).raw["files"])
        session.context()
    assert [len(files) for files in answers] == [1] * 4
    assert len(fetched) == len(set(fetched)) == 4


@pytest.mark.parametrize("broken", ["a file", "a link", "full"])
def test_a_folder_that_cannot_be_written_leaves_references(
    lab: ContextLab,
    model: Provider,
    claude: anthropic.Anthropic,
    tmp_path: Path,
    broken: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    session = f"no-{broken.replace(' ', '-')}"
    if broken == "a file":
        (tmp_path / session).write_text("in the way")
    elif broken == "a link":
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / session).symlink_to(tmp_path / "elsewhere")
    else:

        def full(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fdopen", full)
    client = wrap(claude, session=session, server=lab, offloads=tmp_path)
    talk = history()
    client.messages.create(messages=talk, **WITH)
    talk += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "Go on."}]
    client.messages.create(messages=talk, **WITH)
    assert not model.refused
    for body in model.bodies:
        assert not paths(body) and REF.search(json.dumps(body["messages"]))
        assert body["tools"][-1]["name"] == "read_back"
    assert len(caplog.messages) == 1 and "no longer written as files" in caplog.messages[0]
    assert not list(tmp_path.glob("elsewhere/*"))


def test_an_async_client_writes_files(lab: ContextLab, model: Provider, tmp_path: Path):
    async def go() -> None:
        async with anthropic.AsyncAnthropic(
            api_key="none", base_url=model.url, max_retries=0
        ) as inner:
            client = wrap(inner, session="async files", server=lab, offloads=tmp_path)
            await client.messages.create(messages=history(), **WITH)

    asyncio.run(go())
    [path] = paths(model.bodies[0])
    assert Path(path).read_text() == LOG


@pytest.mark.fault("I2")
def test_names_and_folders_that_are_refused(
    claude: anthropic.Anthropic, lab: ContextLab, tmp_path: Path
):
    for folder in ("with space", 'a"b', "a]b", "x" * 300):
        with pytest.raises(ValueError, match="cannot stand"):
            wrap(claude, session="s", server=lab, offloads=folder)
    for session in ("../../etc", "/etc/passwd", "..", ".", "a/../b", "é", ""):
        inside = Path(OffloadFiles(tmp_path, session).prefix)
        assert inside.parent == tmp_path and inside.name not in ("", ".", "..")
    files = OffloadFiles(tmp_path, "s")
    for name in ("../x.txt", "/etc/x.txt", ".gitignore", "a/b.txt", "", "a\n.txt", "m3.0@ab.txt/"):
        with pytest.raises(ValueError, match="not the name"):
            files.write([name], lambda _: b"")
    assert not list(tmp_path.iterdir())
    (tmp_path / "s").mkdir()
    outside = tmp_path / "outside"
    outside.write_text("kept")
    (tmp_path / "s" / "m3.0@ab12cd34.txt").symlink_to(outside)
    files.write(["m3.0@ab12cd34.txt"], lambda _: b"new")
    assert outside.read_text() == "kept"
    assert (tmp_path / "s" / "m3.0@ab12cd34.txt").read_text() == "new"
    assert len(list((tmp_path / "s").iterdir())) == 1
    (tmp_path / "s").rename(tmp_path / "moved")
    (tmp_path / "s").symlink_to(tmp_path / "moved")
    with pytest.raises(OSError, match="symbolic link"):
        files.write(["m4.0@ab12cd34.txt"], lambda _: b"new")
