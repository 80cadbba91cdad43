"""Tool definitions and system prompt of the agent whose log shows them."""

from __future__ import annotations

from typing import Any


def _tool(name: str, says: str, **fields: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": says,
        "input_schema": {
            "type": "object",
            "properties": {
                field: {"type": "string", "description": text} for field, text in fields.items()
            },
            "required": [next(iter(fields))],
        },
    }


TOOLS = [
    _tool(
        "Read",
        "Shows a file with line numbers. Give offset and limit for a part of it; whole files of up "
        "to 2,000 lines are fine.",
        file_path="Absolute path of the file.",
        offset="First line, from 1.",
        limit="How many lines.",
    ),
    _tool(
        "Grep",
        "Searches files for a regular expression and shows the lines that match.",
        pattern="Regular expression in Python's syntax.",
        path="File or folder to search; the whole project if absent.",
        output_mode="content, or files_with_matches for paths only.",
    ),
    _tool(
        "Edit",
        "Replaces a text in a file. The text must stand there exactly once, blanks included; give "
        "more of its surroundings if it does not, or set replace_all.",
        file_path="Absolute path of the file.",
        old_string="The text to replace.",
        new_string="What stands there afterwards.",
        replace_all="true to replace every place.",
    ),
    _tool(
        "Write",
        "Puts a file in place, instead of whatever is there.",
        file_path="Absolute path of the file.",
        content="The whole content.",
    ),
    _tool(
        "Bash",
        "Runs a command in the project's folder and shows what it prints. Commands that ask "
        "questions do not work; long ones end after two minutes.",
        command="The command.",
        description="What it does, in five words.",
    ),
    _tool(
        "TodoWrite",
        "Keeps the list of todos. Exactly one item is in progress at any time.",
        todos="The whole list: content, status (pending, in_progress, completed).",
    ),
]
"""The agent's tools."""

SYSTEM = """You work on the code of the Skarvik line: timetable, fares and bookings of four ferry
routes. The people you work with run the line; they know ships better than Python.

How you work
- Find the cause before you change anything, and say what it is in a sentence they understand.
- A fix comes with a test that fails without it. Run the tests before and after.
- Change what the task needs and nothing else. What you find on the way, you report.
- Do not delete what you did not make. Do not move money, send messages or touch production.
- If the same thing fails twice, stop and look at why, instead of trying a third time.

What is true here
- All times carry a zone. Times of a port are local to it; elapsed time is not a local matter.
- Amounts are whole øre, never floats.
- The harbour office reads docs/printout.md by column. Its columns stay as they are.
- Commits are small and their first line says what is different for the user.

Your answers are short. Lists where there are several things, no list for one. No praise, no
apologies, and no summary of what can be seen in the diff.
"""
"""The agent's system prompt."""
