"""Which messages count as corrections of an agent."""

from __future__ import annotations

import pytest

from compaction.losses.corrections import is_correction


@pytest.mark.parametrize(
    "text",
    [
        "No, the other file.",
        "That's not what I asked for",
        "you forgot the tests",
        "Hm. I already told you to keep the API",
        "Stop! Undo this",
        "Nein, die andere Datei",
        "Das stimmt nicht, die Tests laufen",
        "Non, pas ce fichier",
        "¡No! Eso no es lo que pedí, no es lo que quiero",
        "Eso no",
        "não, o outro",
        "Нет, другой файл",
        "不对，应该用另一个文件",
        "我说过不要改测试",
        "違います、別のファイルです",
        "아니요, 다른 파일",
    ],
)
def test_corrections(text: str) -> None:
    assert is_correction(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Now do the docs",
        "No problem, go on",
        "Nothing else, thanks",
        "Note that the file is new",
        "Notice the port",
        "Stopwatch support is next",
        "wrongly named files: list them",
        "Nonetheless continue",
        "Please add a stop button",
        "nein danke",
        "继续",
        "Normalise the names",
        "x" * 300 + " you forgot the tests",
    ],
)
def test_what_is_none(text: str) -> None:
    assert not is_correction(text)
