"""Results of OpenHands (`output.jsonl`): one task per line, with its history of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sessions.importers.decoded import Faults, lines
from sessions.importers.importer import Importer
from sessions.importers.message_array import ArraySession
from sessions.importers.naming import name_by_file, stem_of
from sessions.importers.records import Json, Log, Message, Session, Skipped
from sessions.importers.reported import NOTHING, openai_usage
from sessions.importers.wire import Block, mapping, milliseconds, sequence, string, text_block

FORMAT = "openhands-output"

_BESIDE = frozenset({"change_agent_state", "agent_state_changed", "null", "recall", "system"})
_INPUTS = ("command", "code", "path", "url", "content", "browser_actions", "inputs", "outputs")


def recognises(objects: Iterable[dict[str, Json]]) -> bool:
    """Whether the first objects of a JSONL file are results with a history."""
    return any(
        isinstance(given.get("history"), list) and ("instruction" in given or "instance" in given)
        for given in objects
    )


def read(data: bytes, name: str = "") -> Log:
    """Read a file: each line is a session."""
    log = Log(FORMAT)
    faults = Faults("Lines that are not readable JSON")
    for line in lines(data):
        given = mapping(line.value)
        session = _session(given, line.number, name, log) if "history" in given else None
        if session is not None and session.records:
            log.sessions.append(session)
        elif line.fault:
            log.skipped.append(faults.line(line))
        else:
            log.skipped.append(Skipped(line.number, "result", "not context", line.raw))
    log.problems += faults.sentences()
    return log.close(())


def _session(given: dict[str, Json], number: int, name: str, log: Log) -> Session:
    """One task. All its records are of one line, so its events are counted within it."""
    del log
    writer = ArraySession("openhands")
    about = mapping(given.get("metadata"))
    model = string(about.get("model_name")) or string(mapping(about.get("llm_config")).get("model"))
    asked = ""
    for place, event in enumerate(_events(given.get("history")), start=1):
        args = mapping(event.get("args")) or event
        if "observation" in event:
            if string(event["observation"]) not in _BESIDE and asked:
                writer.message(Message("tool", [_result(event, asked)], at=_at(event), line=number))
                asked = ""
        elif string(event.get("action")) in _BESIDE:
            continue
        elif _is_users(event, place):
            text = string(args.get("content"))
            blocks = [text_block(text)] if text else []
            human = bool(blocks)
            writer.message(Message("user", blocks, at=_at(event), human=human, line=number))
        elif "action" in event:
            blocks = _action(event, args, f"call-{place}")
            asked = f"call-{place}" if blocks and blocks[-1]["type"] == "tool_use" else ""
            raw = mapping(mapping(event.get("tool_call_metadata")).get("model_response"))
            usage = raw.get("usage")
            message = Message("assistant", blocks, at=_at(event), line=number)
            reported = openai_usage(usage) if isinstance(usage, dict) else NOTHING
            writer.response(message, reported, model=string(raw.get("model")) or model, raw=usage)
    session = writer.session
    instance = given.get("instance_id") or mapping(given.get("instance")).get("id")
    issue = mapping(given.get("issue"))
    named = string(instance) or str(given.get("id") or issue.get("number") or number)
    session.title = string(issue.get("title")) or named
    name_by_file(session, f"{stem_of(name) or FORMAT} {named}".replace("/", " "), FORMAT)
    return session


def _events(history: Json) -> Iterator[dict[str, Json]]:
    """Events of a history, which some versions keep as pairs."""
    for item in sequence(history):
        for one in item if isinstance(item, list) else [item]:
            if isinstance(one, dict):
                yield one


def _is_users(event: dict[str, Json], place: int) -> bool:
    if event.get("action") != "message":
        return False
    # Old versions name no source; there only the task is the user's.
    return event.get("source") == "user" if "source" in event else place == 1


def _at(event: dict[str, Json]) -> int | None:
    return milliseconds(event.get("timestamp"))


def _action(event: dict[str, Json], args: dict[str, Json], called: str) -> list[Block]:
    name = string(event.get("action"))
    thought = string(args.get("thought"))
    blocks: list[Block] = [text_block(thought)] if thought else []
    if name in {"message", "finish"}:
        text = string(args.get("content")) or string(args.get("final_thought"))
        return [*blocks, text_block(text)] if text else blocks
    inputs = {key: args[key] for key in _INPUTS if args.get(key) is not None}
    return [*blocks, {"type": "tool_use", "id": called, "name": name, "input": inputs}]


def _result(event: dict[str, Json], called: str) -> Block:
    extras = mapping(event.get("extras")) or event
    code = extras.get("exit_code")
    failed = event.get("observation") == "error" or (isinstance(code, int) and code > 0)
    content = string(event.get("content"))
    return {"type": "tool_result", "tool_use_id": called, "content": content, "is_error": failed}


IMPORTER = Importer(
    name=FORMAT,
    order=36,
    title="OpenHands results",
    files="`output.jsonl`",
    recognised_by="lines with `history` next to `instruction` or `instance`",
    read=read,
    knows_lines=recognises,
)
