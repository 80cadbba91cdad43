"""Unsafe settings are refused where others can reach the server; files are private."""

import os
import secrets
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from contextlab import environment
from contextlab.operations import exposure, permissions
from tests import preloaded
from tests.conftest import free_port

STRONG = "4f1c0b7de29a5836c17f60e42bd98a35"


def contextlab(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end on a data directory of its own."""
    return preloaded.run(
        ["-m", "contextlab.cli", *arguments],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(environment.ROOT),
            "CONTEXTLAB_DATA_DIR": str(folder),
            "DATABASE_URL": "",
            "REDIS_URL": "",
            "PORT": str(free_port()),
            **environ,
        },
    )


@pytest.mark.parametrize(
    ("host", "names", "origins", "proxy", "why"),
    [
        ("127.0.0.1", [], [], False, ""),
        ("::1", ["localhost", "lab.localhost", "127.0.0.5", "[::1]"], [], False, ""),
        ("localhost", [], ["http://localhost:5173"], False, ""),
        ("0.0.0.0", [], [], False, "it listens on 0.0.0.0"),
        ("::", [], [], False, "it listens on ::"),
        ("", [], [], False, "it listens on every address"),
        ("192.168.1.4", [], [], False, "it listens on 192.168.1.4"),
        ("127.0.0.1", ["*"], [], False, "CONTEXTLAB_ALLOWED_HOSTS names *"),
        ("127.0.0.1", ["lab.example.com"], [], False, "CONTEXTLAB_ALLOWED_HOSTS names lab."),
        ("127.0.0.1", [], ["https://lab.example.com"], False, "CONTEXTLAB_ORIGINS names https:"),
        ("127.0.0.1", [], ["https://*.example.com"], False, "CONTEXTLAB_ORIGINS names https:"),
        ("127.0.0.1", [], [], True, "CONTEXTLAB_BEHIND_TLS_PROXY is set"),
    ],
)
def test_who_can_reach_a_server(host, names, origins, proxy, why):
    found = exposure.how_public(host, names, origins, behind_proxy=proxy)
    assert found.startswith(why)
    assert bool(found) == bool(why)


@pytest.mark.fault("K4")
@pytest.mark.parametrize(
    "secret",
    ["", "x", "x" * 64, "password" * 8, "abcdefghijklmnopqrstuvwxyz0123456789", "0123456789" * 5,
     f"django-insecure-{'kq7v2m9x' * 6}", "please-change-me-4f1c0b7de29a5836c17f", STRONG[:31]],
)  # fmt: skip
def test_weak_secrets(secret):
    assert exposure.is_weak(secret)


def test_random_secrets_are_strong():
    made = [secrets.token_hex(16), secrets.token_hex(32), secrets.token_urlsafe(48), STRONG]
    assert not any(exposure.is_weak(secret) for secret in made)


@pytest.mark.fault("K3", "K4")
@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"CONTEXTLAB_DEBUG": "1"}, "unset CONTEXTLAB_DEBUG"),
        ({"CONTEXTLAB_SECRET_KEY": "x"}, "replace CONTEXTLAB_SECRET_KEY"),
        ({"CONTEXTLAB_LOGIN_TOKEN": "a"}, "unset CONTEXTLAB_LOGIN_TOKEN"),
    ],
)
def test_unsafe_settings_stop_a_public_server(tmp_path, environ, said):
    ended = contextlab(tmp_path, "serve", "--host", "0.0.0.0", **environ)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("Others can reach this server (it listens on 0.0.0.0)")
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "contextlab.sqlite3").exists(), "it touches nothing"


def test_unsafe_settings_warn_on_loopback(server_with):
    server = server_with(CONTEXTLAB_SECRET_KEY="x", CONTEXTLAB_DEBUG="1")
    assert "Warning: unset CONTEXTLAB_DEBUG" in server.log
    assert "Warning: replace CONTEXTLAB_SECRET_KEY" in server.log


def test_a_kept_weak_secret_is_named_by_its_file(tmp_path):
    (tmp_path / "secret_key").write_text("weak")
    ended = contextlab(tmp_path, "serve", CONTEXTLAB_ALLOWED_HOSTS="lab.example.com")
    assert f"delete {tmp_path / 'secret_key'}" in ended.stderr
    (tmp_path / "secret_key").write_text("")
    ended = contextlab(tmp_path, "serve")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "secret_key is empty; delete it" in ended.stderr


def test_files_are_private_even_in_an_open_folder(tmp_path):
    tmp_path.chmod(0o755)
    ended = contextlab(tmp_path, "token", "list")
    assert ended.returncode == 0, ended.stderr
    made = [path for path in tmp_path.iterdir() if path.is_file()]
    assert {path.name for path in made} >= {"contextlab.sqlite3", "secret_key"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o600}


@pytest.mark.fault("K4")
def test_a_start_tightens_our_files_and_warns_of_the_folder(server_with, tmp_path):
    assert contextlab(tmp_path, "token", "list").returncode == 0
    (tmp_path / "contextlab.sqlite3").chmod(0o644)
    (tmp_path / "notes.txt").write_text("not ours")
    (tmp_path / "notes.txt").chmod(0o644)
    tmp_path.chmod(0o755)
    checked = contextlab(tmp_path, "doctor", "--json")
    assert f"other users can enter {tmp_path}" in checked.stdout
    server = server_with()
    assert f"(mode 755); run `chmod 700 {tmp_path}`" in server.log
    assert stat.S_IMODE((tmp_path / "contextlab.sqlite3").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "notes.txt").stat().st_mode) == 0o644


def test_the_umask_reaches_child_processes(tmp_path):
    """Jobs are children of a server or worker."""
    code = (
        "import subprocess, sys; from contextlab.cli import main\n"
        "try: main(['--version'])\n"
        "except SystemExit: subprocess.run([sys.executable, '-c', \"open('made', 'w')\"])"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True,
                   env={**os.environ, "PYTHONPATH": str(environment.ROOT)})  # fmt: skip
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o600


def test_doctor_fails_on_unsafe_settings_others_can_reach(tmp_path):
    public = contextlab(tmp_path, "doctor", CONTEXTLAB_HOST="0.0.0.0", CONTEXTLAB_DEBUG="1")
    assert public.returncode == 1
    assert "FAIL  access" in public.stdout
    alone = contextlab(tmp_path, "doctor", CONTEXTLAB_DEBUG="1")
    assert "warn  access" in alone.stdout


def test_a_file_of_another_user_is_named(tmp_path, monkeypatch):
    file = tmp_path / "secret_key"
    file.write_text("x")

    def refuse(self: Path, mode: int) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "chmod", refuse)
    assert permissions.tighten(iter([file])) == [
        f"other users can read {file}; run `chmod 600 {file}` as its owner"
    ]
