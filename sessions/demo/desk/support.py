"""A support session: an agent answers passengers all day, one case after the other."""

from __future__ import annotations

import json
import random

from sessions.demo.stage import Done, Stage

_NAMES = (
    "Aase Lund", "Bo Kristensen", "Cora Whitfield", "Dag Solheim", "Eira Macleod", "Finn Ostby",
    "Greta Halvorsen", "Hugh Sinclair", "Ida Nygaard", "Jon Fairburn", "Kari Moen", "Lars Tveit",
    "Mona Erland", "Nils Garvie", "Oda Brekke", "Per Lachlan", "Runa Strand", "Sten Calder",
)  # fmt: skip
_QUESTIONS = (
    ("refund", "my ferry was {n} minutes late, do I get something back? Booking {ref}."),
    ("change", "can I move booking {ref} to the sailing after it? The dog comes along."),
    ("vehicle", "the car on booking {ref} is {n} cm longer with the bike rack. Does it matter?"),
    ("receipt", "I need a receipt with VAT for booking {ref}, my employer asks."),
)
_ROUTES = ("SH1", "SH2", "SL9", "LT4")
_ARTICLES = {
    "refund": "Late arrivals over 60 minutes: half of the fare, over 120 minutes: all of it.",
    "change": "A booking can be moved once, free of charge, up to 30 minutes before departure.",
    "vehicle": "Vehicles are measured with what is attached. The next half meter is charged.",
    "receipt": "Receipts with VAT are sent to the address of the booking, for three years.",
}


class Support:
    """Plays the agent through `many` cases."""

    def __init__(self, stage: Stage, many: int) -> None:
        self._stage = stage
        self._many = many
        self._random = random.Random("support")  # noqa: S311 (a script, not a secret)
        self._open: list[str] = []

    def play(self) -> None:
        """Play all cases; every ninth ends with a hand-over of those still open."""
        for number in range(self._many):
            self._case(number)
            if number % 9 == 8:
                self._hand_over()

    def _case(self, number: int) -> None:
        chance, step = self._random, self._stage.step
        name = _NAMES[number % len(_NAMES)]
        ref = f"SK{chance.getrandbits(28):07X}"
        about, words = _QUESTIONS[chance.randrange(len(_QUESTIONS))]
        late = chance.randint(20, 190)
        self._stage.idle(chance.randint(5_000, 60_000))
        self._stage.human(f"{name} writes: {words.format(n=late, ref=ref)}")
        step("", "", [_tool("get_booking", {"reference": ref}, self._booking(ref, name))])
        step("", "", [_tool("search_help", {"query": f"{about} {words[:30]}"}, self._help(about))])
        if about == "refund":
            step("", f"{late} minutes late.", [_tool(
                "get_sailing", {"reference": ref}, self._sailing(late))])  # fmt: skip
            if late > 60:
                share = 100 if late > 120 else 50
                step(
                    "",
                    "",
                    [
                        _tool(
                            "refund",
                            {"reference": ref, "percent": share},
                            json.dumps({"refund": f"rf_{ref.lower()}", "percent": share}),
                        )
                    ],
                )
        if about == "change" and number % 3 == 0:
            self._open.append(ref)
            step(
                "",
                "",
                [
                    _tool(
                        "hand_over",
                        {"reference": ref, "to": "quay office"},
                        json.dumps({"case": f"case_{ref.lower()}", "state": "open"}),
                    )
                ],
            )
            step(
                "",
                f"{name.split()[0]}, I asked the quay office about {ref}; they write to you.",
                [],
            )
            return
        step("", f"Hello {name.split()[0]}, about {ref}: {_ARTICLES[about]}", [])

    def _hand_over(self) -> None:
        """The shift changes: cases from up to nine conversations ago are named again."""
        self._stage.idle(20_000)
        self._stage.human("Shift change. Which cases are still with the quay office?")
        listed = ", ".join(self._open) or "none"
        if self._open:
            self._stage.step(
                "",
                "",
                [
                    _tool(
                        "list_cases",
                        {"references": list(self._open)},
                        json.dumps(
                            [{"case": f"case_{one.lower()}", "state": "open"} for one in self._open]
                        ),
                    )
                ],
            )
        self._stage.step("", f"Still with the quay office: {listed}.", [])
        self._open.clear()

    def _booking(self, ref: str, name: str) -> str:
        chance = self._random
        history = [
            {
                "sailing": f"{chance.choice(_ROUTES)}-{chance.randint(100, 999)}",
                "paid_ore": chance.randint(89, 1290) * 100,
                "payment": f"pay_{chance.getrandbits(40):010x}",
                "passengers": chance.randint(1, 5),
                "vehicle_cm": chance.choice((0, 0, 450, 500, 720)),
                "boarded_by": f"scanner-{chance.randint(1, 9)}",
            }
            for _ in range(14)
        ]
        whole = {"reference": ref, "name": name, "state": "paid", "history": history}
        return json.dumps(whole, indent=1)

    def _sailing(self, late: int) -> str:
        chance = self._random
        events = [
            {
                "minute": minute,
                "ship": f"{chance.getrandbits(20):05x}",
                "speed_knots": chance.randint(0, 19),
            }
            for minute in range(0, 60, 4)
        ]
        return json.dumps({"late_minutes": late, "events": events}, indent=1)

    def _help(self, about: str) -> str:
        chance = self._random
        found = [
            {
                "id": f"help-{chance.randint(100, 999)}",
                "score": chance.randint(10, 60),
                "text": text,
            }
            for text in _ARTICLES.values()
            for _ in range(4)
        ]
        found.insert(0, {"id": f"help-{about}", "score": 98, "text": _ARTICLES[about]})
        return json.dumps(found, indent=1)


def _tool(name: str, given: dict[str, object], output: str) -> Done:
    return Done(name, given, output, took=420)
