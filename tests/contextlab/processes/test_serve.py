"""One command: starts, prints the way in last, keeps others out, ends cleanly."""

import json
import os
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from contextlab import environment
from tests import preloaded
from tests.empty_store import with_tables
from tests.server import Server

ROOT = environment.ROOT


@pytest.fixture(scope="module")
def served(own_server: Server) -> Server:
    """What it printed is used here."""
    return own_server


def fetch(
    address: str | urllib.request.Request, opener: urllib.request.OpenerDirector | None = None
):
    """Status, headers and text, for errors too."""
    try:
        answer = (opener or urllib.request.build_opener()).open(address)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        return answer.status, answer.headers, answer.read().decode()


def opened(address: str, site: str = "none") -> urllib.request.Request:
    """A request as a browser sends it."""
    return urllib.request.Request(address, headers={"Sec-Fetch-Site": site})


class _StayHere(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None


def test_health_needs_no_login(served):
    status, _, text = fetch(f"{served.address}/healthz")
    assert (status, json.loads(text)) == (200, {"status": "ok"})


def test_the_printed_address_signs_in_and_only_it(served):
    # Signing out needs a session and a token, so a 403 comes from the CSRF check.
    inside = urllib.request.build_opener(_StayHere())
    inside.addheaders = [("Cookie", f"contextlab_session={served.cookie}")]
    assert "Not signed in" not in fetch(f"{served.address}/logout/", inside)[2]
    assert fetch(opened(served.login))[0] == 403, "it works once"

    status, _, text = fetch(f"{served.address}/logout/")
    assert status == 403
    assert "Not signed in" in text

    wrong = served.login[:-2] + ("A/" if served.login[-2] != "A" else "B/")
    status, headers, text = fetch(wrong)
    assert status == 403
    assert "Not signed in" in text
    assert "contextlab_session" not in str(headers.get_all("Set-Cookie"))
    assert fetch(f"{served.address}/login/%00%FF/")[0] == 403


@pytest.mark.fault("G10")
def test_a_new_address_is_printed_on_demand(served):
    opener = urllib.request.build_opener(_StayHere())
    ended = command(served, "login", "--json")
    address = json.loads(ended.stdout)["url"]
    assert address.startswith(f"{served.address}/login/")
    cookies = fetch(opened(address), opener)[1].get_all("Set-Cookie")
    assert "contextlab_session" in {cookie.partition("=")[0] for cookie in cookies}
    for cookie in cookies:
        assert cookie.startswith("contextlab_")
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie


def test_every_answer_forbids_foreign_content(served):
    for path in ("/healthz", "/nowhere/"):
        policy = fetch(served.address + path)[1]["Content-Security-Policy"]
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert rules["default-src"] == "'none'"
        assert rules["script-src"] == rules["style-src"] == "'self'"
        assert rules["frame-ancestors"] == rules["base-uri"] == "'none'"


@pytest.mark.fault("E10")
def test_another_host_name_is_refused(served):
    request = urllib.request.Request(
        f"{served.address}/nowhere/", headers={"Host": "rebound.example:80"}
    )
    assert fetch(request)[0] == 400


@pytest.mark.fault("E10")
def test_a_header_cannot_move_our_addresses(served):
    request = urllib.request.Request(
        f"{served.address}/moved/healthz", headers={"Daphne-Root-Path": "/moved"}
    )
    assert fetch(request)[0] == 404


def test_secrets_are_kept_for_the_owner_alone(served):
    mode = stat.S_IMODE((served.data_dir / "secret_key").stat().st_mode)
    assert mode == 0o600
    assert served.login.split("/")[-2] not in served.log


def test_every_start_prints_a_new_address_and_the_end_is_clean(server_with):
    first = server_with()
    assert first.stop() == 0
    second = server_with(PORT=str(first.port))
    assert second.login != first.login
    assert fetch(opened(first.login))[0] == 403, "the unused one ended with the start"
    assert second.cookie
    assert fetch(f"{second.address}/healthz")[0] == 200
    assert second.stop() == 0


def test_a_public_server_prints_no_way_in_but_tells_of_one(server_with):
    server = server_with(CONTEXTLAB_ALLOWED_HOSTS="lab.example.com")
    assert server.login == f"{server.address}/"
    ended = command(server, "login", CONTEXTLAB_ALLOWED_HOSTS="lab.example.com")
    assert ended.returncode == 1
    assert "CONTEXTLAB_ALLOWED_HOSTS names lab.example.com" in ended.stderr
    # A command with other settings may print one; the server does not accept it.
    address = json.loads(command(server, "login", "--json").stdout)["url"]
    status, _, text = fetch(opened(address))
    assert status == 403
    assert "contextlab invite" in text


def command(server, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command on a server's data."""
    return preloaded.run(
        ["-m", "contextlab.cli", *arguments],
        env={
            **os.environ,
            "CONTEXTLAB_DATA_DIR": str(server.data_dir),
            "DATABASE_URL": "",
            "PORT": str(server.port),
            **environ,
        },
    )


@pytest.mark.fault("M6")
def test_a_second_server_on_the_same_data_says_so(served):
    again = subprocess.run(
        [sys.executable, "-m", "contextlab.cli", "serve"],
        cwd=ROOT,
        env={**os.environ, "CONTEXTLAB_DATA_DIR": str(served.data_dir), "DATABASE_URL": ""},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert again.returncode == 1
    assert "another contextlab server is using" in again.stderr


def test_a_taken_port_is_named(tmp_path):
    with_tables(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = subprocess.run(
            [sys.executable, "-m", "contextlab.cli", "serve", "--port", str(port)],
            cwd=ROOT,
            env={**os.environ, "CONTEXTLAB_DATA_DIR": str(tmp_path), "DATABASE_URL": ""},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert ended.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in ended.stderr
