"""The response may be lost after the work was done: the client's retry is recognized."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from contextlab.client import ContextLab, Unreachable
from tests.conftest import Server

GO_ON = {"role": "user", "content": "Go on."}


@pytest.mark.fault("A2")
def test_a_batch_without_an_answer_is_stored_once(
    served: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = ContextLab(served.address, served.new_key(), patience=0)
    session = lab.session("unanswered")
    session.append({"role": "user", "content": "Begin."})
    ask = lab._http.request

    def unheard(*given: Any, **more: Any) -> Any:
        ask(*given, **more)
        raise httpx2.ReadError("the connection is gone")

    with monkeypatch.context() as patched:
        patched.setattr(lab._http, "request", unheard)
        for _ in range(3):
            with pytest.raises(Unreachable):
                session.append(GO_ON)
    assert session.append(GO_ON).raw["last_seq"] == 2
    assert session.append(GO_ON).raw["last_seq"] == 3  # sent again after a response
    lab.close()
