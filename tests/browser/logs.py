"""Logs to upload, written for the test that needs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

START = "2026-03-02T09:{minute:02}:{second:02}.000Z"


ASKED = "Find out where the port is set & why <b>it</b> is ignored."


def claude_code(path: Path, steps: int, compaction_at: int, asked: str = ASKED) -> Path:
    """A Claude Code log: each step reads a file and has usage; one compaction."""
    lines: list[dict[str, Any]] = []
    prompt, parent = 24_000, None

    def add(form: str, step: int, **fields: Any) -> None:
        nonlocal parent
        uuid = f"u{len(lines)}"
        stamp = START.format(minute=step // 4 % 60, second=step % 4 * 15)
        lines.append(
            {"type": form, "uuid": uuid, "parentUuid": parent, "sessionId": path.stem}
            | {"timestamp": stamp, "version": "2.1.0", "isSidechain": False, **fields}
        )
        parent = uuid

    def says(text: str, step: int, **fields: Any) -> None:
        add("user", step, message={"role": "user", "content": text}, **fields)

    says(asked, 0)
    for step in range(1, steps + 1):
        if step == compaction_at:
            parent = None
            metadata = {"trigger": "auto", "preTokens": prompt}
            add("system", step, subtype="compact_boundary", compactMetadata=metadata)
            says("This session goes on from an earlier one: the port is 8765.", step,
                 isCompactSummary=True)  # fmt: skip
            prompt = 26_000
        use = {"type": "tool_use", "id": f"t{step}", "name": "Read"}
        use["input"] = {"file_path": f"/app/settings_{step}.py"}
        usage = {"input_tokens": 4, "cache_read_input_tokens": prompt, "output_tokens": 60}
        usage["cache_creation_input_tokens"] = 900
        message = {"id": f"m{step}", "role": "assistant", "model": "claude-sonnet-4-5"}
        message |= {"content": [use], "usage": usage, "stop_reason": "tool_use"}
        add("assistant", step, message=message, requestId=f"r{step}")
        body = "".join(f"PORT_{step}_{line} = {8000 + line}\n" for line in range(80))
        answer = {"type": "tool_result", "tool_use_id": f"t{step}", "content": body}
        add("user", step, message={"role": "user", "content": [answer]})
        prompt += 904
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
