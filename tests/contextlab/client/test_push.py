"""Push: logs reach a running server, and only what is new or has grown is sent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from contextlab.client import ContextLab, Refused, Unreachable
from contextlab.client import push as pushing
from contextlab.client.push import Sent, push, watch
from tests.conftest import ROOT, wait_until
from tests.contextlab.client.test_client import lab
from tests.contextlab.client.test_examples import key_of
from tests.contextlab.client.test_patience import answering
from tests.contextlab.test_cli import ended

__all__ = ["lab"]


def lines(name: str, start: int, stop: int, text: str = "kelp") -> str:
    """Lines of Claude Code's log of a session."""
    return "".join(
        json.dumps(
            {
                "type": "user",
                "sessionId": name,
                "uuid": f"{name}-{n}",
                "parentUuid": f"{name}-{n - 1}" if n else None,
                "timestamp": f"2026-11-20T10:{n // 60:02}:{n % 60:02}Z",
                "message": {"role": "user", "content": f"{n} {text}"},
            }
        )
        + "\n"
        for n in range(start, stop)
    )


def log(folder: Path, name: str, count: int = 2, text: str = "kelp") -> Path:
    file = folder / "-work-shop" / f"{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(lines(name, 0, count, text))
    return file


def messages(lab: ContextLab, name: str) -> int:
    """Messages of a session, 0 without one."""
    try:
        return int(lab.request("GET", f"sessions/{name}")["messages"])
    except Refused:
        return 0


@pytest.fixture
def sent(tmp_path: Path) -> Iterator[Sent]:
    rows = Sent(tmp_path, "http://nowhere", "clk_x")
    yield rows
    rows.close()


def test_only_new_and_grown_logs_are_sent(lab: ContextLab, sent: Sent, tmp_path: Path):
    folder = tmp_path / "projects"
    grown, big = log(folder, "grown"), log(folder / "deep", "big", 30, "x" * 200_000)
    (folder / "notes.txt").write_text("no log")
    (folder / "empty.jsonl").touch()
    (folder / "gone.jsonl").symlink_to(folder / "nowhere")
    (folder / "wrong.jsonl").write_text("neither JSON nor a log\n")

    def pushed() -> dict[str, str]:
        return {one.path.name: one.problem for one in push(lab, sent, [folder])}

    gone = {"gone.jsonl": "No such file or directory."}
    assert pushed() == {**gone, **dict.fromkeys(("grown.jsonl", "big.jsonl", "wrong.jsonl"), "")}
    wait_until(lambda: messages(lab, "big") == 30)
    wait_until(lambda: messages(lab, "grown") == 2)
    assert pushed() == gone
    grown.touch()
    assert pushed() == gone
    with grown.open("a") as file:
        file.write(lines("grown", 2, 5))
    big.unlink()
    assert pushed() == {**gone, "grown.jsonl": ""}
    wait_until(lambda: messages(lab, "grown") == 5)


def test_a_push_that_was_killed_goes_on(lab: ContextLab, tmp_path: Path):
    folder = tmp_path / "projects"
    names = [f"killed-{n}" for n in range(12)]
    for name in names:
        log(folder, name)
    command = [sys.executable, "-m", "contextlab.cli", "push", str(folder), "--url", lab.url]
    environment = {**os.environ, "CONTEXTLAB_DATA_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    environment["CONTEXTLAB_TOKEN"] = key_of(lab)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout
        said = first.stdout.readline()
        first.kill()
        said += first.stdout.read()
    assert said.startswith("sent  ")
    second = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    before, after = said.count("sent  "), second.stdout.count("sent  ")
    assert before < 12
    assert before + after in (11, 12)  # one may have been noted, and not yet printed
    wait_until(lambda: all(messages(lab, name) for name in names))
    assert {messages(lab, name) for name in names} == {2}


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--key", "clk_wrong"], 1, "refused: 401: The key is unknown, revoked or expired."),
        ([], 2, "No key. Pass --key or set CONTEXTLAB_TOKEN; "),
        (["--key", "clk_x", "--url", "kelp"], 2, "kelp is no address of a server. "),
        (
            ["--key", "clk_x", "--watch", "nowhere.jsonl"],
            2,
            "No such file or folder: nowhere.jsonl",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(
    lab: ContextLab, tmp_path: Path, capsys: Any, monkeypatch: Any, arguments: Any, code: int,
    sentence: str,
):  # fmt: skip
    monkeypatch.delenv("CONTEXTLAB_TOKEN", raising=False)
    paths = [str(log(tmp_path, "refused"))] if arguments[-1:] != ["nowhere.jsonl"] else []
    found, out, said = ended(capsys, "push", "--url", lab.url, *arguments, *paths)
    assert (found, out) == (code, "")
    assert sentence in said
    assert said.count("\n") == 1


IMPORTED = httpx2.Response(202, json={"import": "1"})


@pytest.mark.parametrize(
    ("status", "sent_again"), [(413, False), (415, False), (422, False), (408, True), (500, True)]
)
def test_a_bad_file_does_not_stop_the_others(
    sent: Sent, tmp_path: Path, status: int, sent_again: bool
):
    log(tmp_path, "a")
    log(tmp_path, "b")
    refusal = httpx2.Response(status, json={"title": "Too bad"})
    server, asked = answering(refusal, IMPORTED)
    first = list(push(server, sent, [tmp_path]))
    assert [one.problem for one in first] == [f"{status}: Too bad", ""]
    assert [bool(one.problem) for one in push(server, sent, [tmp_path])] == [False] * sent_again
    assert len(asked) == 2 + sent_again


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (httpx2.Response(403, json={"title": "Read only"}), "403: Read only"),
        (httpx2.Response(308, headers={"Location": "https://x/"}), "the server is at https://x/"),
        (httpx2.Response(200, text="<h1>Sign in</h1>"), "is not a ContextLab server"),
        (httpx2.Response(200, json=["signed", "in"]), "is not a ContextLab server"),
        (httpx2.Response(404, text="nothing"), "404: "),
    ],
)
def test_what_all_files_would_get_ends_it(
    sent: Sent, tmp_path: Path, answer: httpx2.Response, sentence: str
):
    log(tmp_path, "a")
    log(tmp_path, "b")
    server, asked = answering(answer)
    with pytest.raises(Refused, match=sentence):
        list(push(server, sent, [tmp_path]))
    assert len(asked) == 1
    assert len(list(push(answering(IMPORTED)[0], sent, [tmp_path]))) == 2


def test_a_log_beyond_the_limit_is_named_once(sent: Sent, tmp_path: Path, monkeypatch: Any):
    file = log(tmp_path, "a")
    monkeypatch.setattr(pushing, "LARGEST", 100)
    server, asked = answering(IMPORTED)
    (one,) = push(server, sent, [file])
    assert one.problem == f"It has {file.stat().st_size:,} bytes; the limit is 100."
    assert not [*push(server, sent, [file]), *asked]


def test_a_watched_log_is_sent_when_it_was_quiet(sent: Sent, tmp_path: Path, monkeypatch: Any):
    polls = iter(range(100))

    class Clock:
        """Time in which the log is written at the first polls."""

        time, monotonic = time.time, time.monotonic

        def sleep(self, seconds: float) -> None:
            if next(polls) == 2:
                os.utime(file, (1, 1))

    monkeypatch.setattr(pushing, "time", Clock())
    file = log(tmp_path, "a")
    server, asked = answering(IMPORTED, httpx2.Response(500, json={"title": "Too bad"}), IMPORTED)
    logs = watch(server, sent, [tmp_path])
    assert next(logs).path == file
    assert next(polls) == 3
    file.write_text(lines("a", 0, 9))
    os.utime(file, (2, 2))
    assert next(logs).problem == "500: Too bad"
    monkeypatch.setattr(pushing, "AGAIN", 0)
    file.unlink()
    other = log(tmp_path, "b")
    os.utime(other, (3, 3))
    assert next(logs).path == other
    assert len(asked) == 3


def test_a_server_that_is_away_ends_a_push_and_not_a_watch(sent: Sent, tmp_path: Path):
    file = log(tmp_path, "a")
    os.utime(file, (1, 1))
    away, _ = answering(httpx2.ConnectError("refused"), patience=0)
    with pytest.raises(Unreachable):
        list(push(away, sent, [file]))
    logs = watch(away, sent, [file])
    assert "did not answer" in next(logs).problem
