"""A research session: pages are found, read, noted, and put together in a report."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

from sessions.demo.stage import Done, Stage

_PORTS = (
    "Aldervik", "Brennholm", "Castrup", "Dunmouth", "Eidsund", "Farsey", "Grimness", "Holmstad",
    "Ivelmouth", "Jarlsund", "Kvitnes", "Lindhaven", "Morvik", "Nordpoint", "Ostersund Quay",
    "Penhallow", "Quernby", "Rossvik", "Sandhamar", "Tarnhead", "Ulverport", "Vestmar",
    "Wickhaven", "Ytterholm", "Zandvoorde", "Ansund", "Borgness", "Carrick Quay", "Dalvik",
    "Elmouth",
)  # fmt: skip
_TOPICS = (
    ("grid", "The substation behind the quay delivers {a} kW and was planned for {b} kW."),
    ("cable", "Crews connect the cable in {c} minutes; in winter it took {d} minutes more."),
    ("price", "The port charges {e} øre per kilowatt hour, and {b} NOK for each connection."),
    ("tide", "With a tide of {d} decimeters the crane has to follow the ship while it charges."),
    ("safety", "A fault current of {c} A opened the breaker twice in {d} months of service."),
    ("crew", "Two people were trained for {c} hours; one of them must be at the quay."),
    ("battery", "The ferry takes {a} kWh in a stop of {c} minutes and arrives with {d} percent."),
    ("noise", "Neighbors measured {d} decibels less than with the auxiliary engine running."),
)
_MORE = (
    "The operator says that the first year decided little, because two ships were still on diesel.",
    "Maintenance is done at night, between the last arrival and the first departure.",
    "A spare transformer stands in a container; it was never used so far.",
    "The contract runs for ten years and can be left after five, with notice of one year.",
    "Weather stopped the connection on a few days, always for wind and never for waves.",
    "What the town paid is not in the report; the council published it separately.",
)


@dataclass(frozen=True, slots=True)
class _Page:
    """A page on the web: its port, address, text, and the numbers that matter."""

    port: str
    url: str
    text: str
    kw: int
    ore: int
    code: str


class Research:
    """Plays the agent: for each port it searches, reads, and notes two numbers."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._random = random.Random("research")  # noqa: S311 (a script, not a secret)
        self._notes: list[str] = []

    def play(self) -> None:
        """Play from the question to the report."""
        self._stage.human(_TASK)
        self._stage.step(
            "",
            "I go port by port: search, read, note the numbers with source.",
            [
                _tool(
                    "WebSearch",
                    {"query": "shore power ferries ports overview"},
                    self._hits("ports"),
                )
            ],
        )
        for number, port in enumerate(_PORTS, 1):
            self._study(_page(port), number)
            if number % 10 == 0 and number < len(_PORTS):
                self._stage.step("", f"{number} ports are in the notes.", [])
                self._stage.idle(45_000)
                self._stage.human("Fine. Keep the source code of each page in the table.")
        self._report()

    def _study(self, page: _Page, number: int) -> None:
        step = self._stage.step
        step("", f"Port {number}: {page.port}.", [_tool(
            "WebSearch", {"query": f"{page.port} shore power ferry kW tariff"},
            self._hits(page.port, page.url))])  # fmt: skip
        step("", "", [_tool("WebFetch", {"url": page.url}, page.text, took=1_900)])
        note = f"{page.port}: {page.kw} kW, {page.ore} øre per kWh, source {page.code}"
        self._notes.append(note)
        step("", note + ".", [_tool(
            "Bash", {"command": f"echo '- {note}' >> notes.md && wc -l notes.md"},
            f"{len(self._notes)} notes.md")])  # fmt: skip

    def _hits(self, about: str, url: str = "") -> str:
        chance = self._random
        hits = [
            {
                "title": f"{about}: shore power, part {chance.randint(2, 90)}",
                "url": f"https://press.example/{chance.getrandbits(40):010x}",
                "snippet": " ".join(chance.sample(_MORE, 2)),
            }
            for _ in range(9)
        ]
        if url:
            hits.insert(2, {"title": f"{about}, port report", "url": url, "snippet": _MORE[0]})
        return json.dumps(hits, indent=1)

    def _report(self) -> None:
        rows = "\n".join(
            f"| {note.replace(': ', ' | ').replace(', ', ' | ')} |" for note in self._notes
        )
        text = f"# Shore power in thirty ports\n\n| port | power | price | source |\n{rows}\n"
        self._stage.step("", "All thirty are read. The report.", [
            _tool("Write", {"file_path": "/home/mara/notes/shore-power.md", "content": text},
                  "File created successfully at: /home/mara/notes/shore-power.md")])  # fmt: skip
        self._stage.step(
            "",
            "The report is in shore-power.md: thirty ports with power, price and source. Where a "
            "port gives no price for small ferries, the table has that of the next class.",
            [],
        )


def _page(port: str) -> _Page:
    chance = random.Random(port)  # noqa: S311 (a script, not a secret)
    kw, ore = chance.randint(1100, 9800), chance.randint(80, 240)
    code = f"SP-{chance.randint(10_000, 99_999)}"
    slug = port.lower().replace(" ", "-")
    parts = [f"# {port}: power from the quay\n\nReport {code}. Power: {kw} kW. Price: {ore} øre.\n"]
    for _ in range(9):
        name, frame = chance.choice(_TOPICS)
        lines = [frame.format(a=chance.randint(900, 9900), b=chance.randint(1000, 9000),
                              c=chance.randint(3, 60), d=chance.randint(2, 40),
                              e=chance.randint(70, 260))]  # fmt: skip
        lines += chance.sample(_MORE, 4)
        chance.shuffle(lines)
        parts.append(f"## {name.title()}\n\n{' '.join(lines)}\n")
    return _Page(
        port, f"https://ports.example/{slug}/{code.lower()}", "\n".join(parts), kw, ore, code
    )


def _tool(name: str, given: dict[str, object], output: str, took: int = 700) -> Done:
    return Done(name, given, output, took=took)


_TASK = (
    "Which ports give ferries power from the quay, how much, and at what price? Take the thirty of "
    "our list, from Aldervik on. I need a table with power, price and the report each number is "
    "from. Numbers without a source do not help me."
)
