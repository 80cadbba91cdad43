"""Values from the environment."""

import stat
import threading
from pathlib import Path

import pytest

from contextlab import environment


def test_a_secret_is_made_once_even_by_many_at_once(tmp_path):
    folder = tmp_path / "new"
    got: list[str] = []
    together = threading.Barrier(8)

    def read() -> None:
        together.wait()
        got.append(environment.kept_secret(folder, "key"))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 8
    assert len(set(got)) == 1
    assert len(got[0]) >= 48
    assert [path.name for path in folder.iterdir()] == ["key"]
    assert stat.S_IMODE((folder / "key").stat().st_mode) == 0o600


def test_a_wrong_number_names_its_variable(monkeypatch):
    monkeypatch.setenv("CONTEXTLAB_BODY_MB", "ten")
    with pytest.raises(ValueError, match="CONTEXTLAB_BODY_MB"):
        environment.number("BODY_MB", 10)
    monkeypatch.setenv("CONTEXTLAB_BODY_MB", "")
    assert environment.number("BODY_MB", 10) == 10


def test_where_data_is_kept(monkeypatch, tmp_path):
    monkeypatch.delenv("CONTEXTLAB_DATA_DIR", raising=False)
    assert environment.data_dir() == environment.ROOT / "var"
    monkeypatch.setattr(environment, "ROOT", tmp_path)  # installed: without manage.py
    monkeypatch.setenv("XDG_DATA_HOME", "/share")
    assert environment.data_dir() == Path("/share/contextlab")
    monkeypatch.setenv("CONTEXTLAB_DATA_DIR", str(tmp_path / "own"))
    assert environment.data_dir() == tmp_path / "own"


def test_lists_and_flags(monkeypatch):
    monkeypatch.setenv("CONTEXTLAB_ALLOWED_HOSTS", "a.example, b.example c.example")
    assert environment.words("ALLOWED_HOSTS") == ["a.example", "b.example", "c.example"]
    monkeypatch.setenv("CONTEXTLAB_DEBUG", "Yes")
    assert environment.flag("DEBUG")
    assert not environment.flag("UNSET")
