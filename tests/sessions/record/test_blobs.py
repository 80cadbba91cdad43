"""The form in which content is stored."""

from __future__ import annotations

import random
import zlib

import pytest

from sessions.models.record.blobs import stored_form


@pytest.mark.parametrize("half", [100, 128, 511, 512, 1_000, 4_096, 16_000])
def test_a_repetition_is_found_however_far_back_it_began(half: int):
    data = random.Random(half).randbytes(half) * 2
    stored, packed = stored_form(data)
    assert packed
    assert len(stored) < len(data) * 0.7
    assert zlib.decompress(stored) == data


def test_short_content_is_stored_as_it_is():
    assert stored_form(b"a" * 199) == (b"a" * 199, False)
