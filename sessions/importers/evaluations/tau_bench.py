"""Results of tau-bench (an array of trajectories) and tau2-bench (simulations): many sessions."""

from __future__ import annotations

from sessions.importers.importer import Importer
from sessions.importers.message_array import ArraySession, document
from sessions.importers.naming import name_by_file, stem_of
from sessions.importers.openai_messages import MessageReader
from sessions.importers.records import Json, Log, Message, Skipped
from sessions.importers.wire import mapping, sequence, string, text_block

FORMAT = "tau-bench"


def recognises(value: Json) -> bool:
    """Whether a document has trajectories or simulations."""
    first = mapping((sequence(value) or [None])[0])
    return ("traj" in first and "task_id" in first) or "simulations" in mapping(value)


def read(data: bytes, name: str = "") -> Log:
    """Read a file; each trial of a task is a session."""
    value = document(data, "results of tau-bench")
    log = Log(FORMAT)
    if isinstance(value, list):
        for index, item in enumerate(map(mapping, value), start=1):
            _trajectory(log, item, index, name)
    else:
        given = mapping(value)
        about = mapping(given.get("info"))
        for index, item in enumerate(map(mapping, sequence(given.get("simulations"))), start=1):
            _simulation(log, item, index, name, about)
    sessions, log.sessions = log.sessions, []
    return log.close(sessions)


def _close(log: Log, writer: ArraySession, item: dict[str, Json], index: int, name: str) -> None:
    """Add a session, named by its task and trial in this file."""
    task, trial = item.get("task_id"), item.get("trial")
    named = str(index) if task is None else f"{task}#{trial or 0}"
    one = writer.log(FORMAT, {"title": f"Task {named}"}, name)
    # Files of several runs have one name, and a task's trials may begin alike.
    name_by_file(one.sessions[0], f"{stem_of(name) or FORMAT} {named}".replace("/", " "), FORMAT)
    reward = mapping(item.get("reward_info")).get("reward", item.get("reward"))
    one.sessions[0].meta["reward"] = reward if isinstance(reward, int | float) else None
    log.sessions += one.sessions
    log.skipped += one.skipped
    log.problems += one.problems


def _trajectory(log: Log, item: dict[str, Json], index: int, name: str) -> None:
    writer = ArraySession("tau-bench")
    reader = MessageReader(writer)
    for place, message in enumerate(sequence(item.get("traj")), start=1):
        if isinstance(mapping(message).get("role"), str):
            reader.take(message, place)
        else:
            writer.no_message(place)
    _close(log, writer, item, index, name)


def _simulation(
    log: Log, item: dict[str, Json], index: int, name: str, about: dict[str, Json]
) -> None:
    """The agent's side: the simulated user's own tools and usage are not the agent's."""
    writer = ArraySession(string(mapping(about.get("agent_info")).get("implementation")))
    model = string(mapping(about.get("agent_info")).get("llm"))
    policy = string(mapping(about.get("environment_info")).get("policy"))
    if policy:
        writer.message(Message("system", [text_block(policy)], kind="system"))
    reader = MessageReader(writer, model)
    for place, message in enumerate(map(mapping, sequence(item.get("messages"))), start=1):
        role = message.get("role")
        if not isinstance(role, str):
            writer.no_message(place)
        elif message.get("requestor") == "user" or (role == "user" and not message.get("content")):
            writer.skipped.append(Skipped(place, "tool of the simulated user", "not context"))
        else:
            reader.take(_wire(message), place)
    _close(log, writer, item, index, name)


def _wire(message: dict[str, Json]) -> dict[str, Json]:
    """A message of tau2 in the form of chat completions."""
    raw = mapping(mapping(message.get("raw_data")).get("usage"))
    calls = [
        {"id": call.get("id"), "function": call}
        for call in map(mapping, sequence(message.get("tool_calls")))
    ]
    return {
        **message,
        "tool_calls": calls,
        "tool_call_id": message.get("id"),
        "usage": raw or message.get("usage"),
    }


IMPORTER = Importer(
    name=FORMAT,
    order=59,
    title="tau-bench and tau2-bench",
    files="results with all trajectories",
    recognised_by="items with `task_id` and `traj`, or `simulations`",
    read=read,
    knows_document=recognises,
)
