"""Strings that make a pattern work hard, made from its own parse tree, and how hard it works.

As a program, in a process that may be killed: reads cases as JSON lines from stdin and writes one
line of JSON for each. A case that takes more CPU seconds than the argument says ends the process.
"""

import json
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice, product
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

SMALL, LARGE = 5_000, 20_000
"""Characters; a linear pattern takes 4 times as long for the second, a quadratic one 16 times."""
MOST_RATIO = 9.0
MOST_SECONDS = 0.1 * LARGE / 100_000
"""CPU seconds for LARGE, from 100 ms for 100,000 characters."""
MOST_SECONDS_CUT = 0.002
"""CPU seconds for a pattern that is applied to a slice only."""
QUICK_SECONDS = MOST_SECONDS / 16
"""For SMALL: what a quadratic pattern may take to stay within the bound."""
MEASURED_SECONDS = 0.1
"""How long a measurement is repeated: the clock of some systems ticks every 10 ms."""

ALPHABET = (
    "a0 \n\t_-.:/<>()[]{}`\"'\\|,;=+*#@!?$%&~^AZz9\r\x00é字かｱ“”«»→│─"
    "bcdefghijklmnopqrstuvwxyBCDEFGHIJKLMNOPQRSTUVWXY12345678\u00a0\x0b"
)
ENDS = ("", "\x00\n!")
REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
MANY = 20
"""A repetition of more counts as long."""
METHODS: dict[str, Callable[..., Any]] = {
    "match": lambda pattern, text: pattern.match(text),
    "fullmatch": lambda pattern, text: pattern.fullmatch(text),
    "search": lambda pattern, text: pattern.search(text),
    "findall": lambda pattern, text: pattern.findall(text),
    "finditer": lambda pattern, text: sum(1 for _ in pattern.finditer(text)),
    "sub": lambda pattern, text: pattern.sub(text[:0], text),
    "subn": lambda pattern, text: pattern.sub(text[:0], text),
    "split": lambda pattern, text: pattern.split(text),
}


class Case(NamedTuple):
    """One pattern and the methods it is used with; `latin` is true for patterns of bytes.

    `longest` is the length that callers cut their text to; 0 for none.
    """

    pattern: str
    flags: int
    latin: bool
    methods: list[str]
    longest: int


def attacks(pattern: str, flags: int) -> Iterator[str]:
    """Yield short strings (a head, a NUL, what is repeated, a NUL, an end)."""
    tree = parser.parse(pattern, flags & ~re.DEBUG)
    seen: set[tuple[str, str]] = set()
    whole = _sample(tree)
    pumps: list[tuple[str, str]] = [
        ("", one) for one in ("\n", " ", "a", "`", "([{", "<", "0", "\n ")
    ]
    pumps += [("", whole), ("", f"{whole}\n"), ("", whole[:-1]), ("", whole[:1])]
    for before, item in _repeats(tree, ""):
        for repeated in _samples(item):
            pumps += [(before, repeated), ("", before + repeated), ("", f"{before}{repeated}\n")]
            # A run that several beginnings share, each on a line or after a word of its own.
            pumps += [(before, f"{repeated} "), ("", f"{repeated}{before}")]
    for chars in _classes(tree):
        pumps += [("", one) for one in chars] + [("", "".join(chars[:2]))]
    for head, pump in pumps:
        if pump and (head, pump) not in seen:
            seen.add((head, pump))
            yield f"{head}\0{pump}"


def written(attack: str, size: int, end: str) -> str:
    """Return the text of an attack, about `size` characters long."""
    head, _, pump = attack.partition("\0")
    return head + pump * max((size - len(head)) // len(pump), 1) + end


def _repeats(tree: Any, before: str) -> Iterator[tuple[str, Any]]:
    """Yield each long repetition with a string that leads to it."""
    for op, value in tree:
        if op in REPEATS:
            low, high, item = value
            if high is sre.MAXREPEAT or high > MANY:
                yield before, item
            yield from _repeats(item, before)
            before += _sample(item) * min(low, 50)
            continue
        for part in _parts(op, value):
            yield from _repeats(part, before)
        before += _sample([(op, value)])


def _parts(op: Any, value: Any) -> list[Any]:
    if op is sre.SUBPATTERN:
        return [value[3]]
    if op is sre.BRANCH:
        return list(value[1])
    if op in (sre.ASSERT, sre.ASSERT_NOT):
        return [value[1]]
    if op is sre.ATOMIC_GROUP:
        return [value]
    if op is sre.GROUPREF_EXISTS:
        return [part for part in value[1:] if part is not None]
    return []


def _classes(tree: Any) -> Iterator[list[str]]:
    """Yield characters of each set in the tree."""
    for op, value in tree:
        if op in (sre.IN, sre.NOT_LITERAL, sre.ANY, sre.LITERAL):
            yield _members(op, value)[:4]
        parts = [value[2]] if op in REPEATS else _parts(op, value)
        for part in parts:
            yield from _classes(part)


def _samples(tree: Any) -> list[str]:
    """Return up to eight strings that the tree matches, or nearly."""
    first = _sample(tree)
    if len(tree) == 1 and tree[0][0] in (sre.IN, sre.ANY, sre.NOT_LITERAL):
        return _spread(_members(*tree[0]))
    if len(tree) == 1 and tree[0][0] is sre.BRANCH:
        return [text for part in tree[0][1][1] if (text := _sample(part))][:8]
    if len(tree) == 1 and tree[0][0] is sre.SUBPATTERN:
        return _samples(tree[0][1][3])
    return [first] if first else []


def _spread(chars: list[str]) -> list[str]:
    """Return characters of different kinds."""
    kinds: dict[str, str] = {}
    for char in chars:
        kind = "w" if char.isalpha() else "d" if char.isdigit() else "s" if char == " " else char
        kinds.setdefault(kind, char)
    return list(kinds.values())[:8]


def _sample(tree: Any) -> str:
    """Return a short string that the tree matches, or nearly: assertions are ignored."""
    return "".join(_sample_of(op, value) for op, value in tree)


def _sample_of(op: Any, value: Any) -> str:
    if op in REPEATS:
        low, high, item = value
        return _sample(item) * min(max(low, 1 if high else 0), 50)
    if op in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
        return (_members(op, value) or [""])[0]
    if op is sre.BRANCH:
        return next(filter(None, map(_sample, value[1])), "")
    if op in (sre.SUBPATTERN, sre.ATOMIC_GROUP):
        return _sample(_parts(op, value)[0])
    return ""


def _members(op: Any, value: Any) -> list[str]:
    """Return characters that one node matches."""
    if op is sre.LITERAL:
        return [chr(value)]
    if op is sre.NOT_LITERAL:
        return [char for char in ALPHABET if ord(char) != value]
    if op is sre.ANY:
        return [char for char in ALPHABET if char != "\n"]
    negated = value[0][0] is sre.NEGATE
    own = "".join(chr(one[1]) for one in value if one[0] is sre.LITERAL)
    own += "".join(chr(one[1][0]) for one in value if one[0] is sre.RANGE)
    chars = ALPHABET if negated else ALPHABET + own
    return [char for char in chars if any(_holds(one, char) for one in value) != negated]


def _holds(node: tuple[Any, Any], char: str) -> bool:
    op, value = node
    if op is sre.LITERAL:
        return ord(char) == value
    if op is sre.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    if op is sre.CATEGORY:
        name = str(value).removeprefix("CATEGORY_").removeprefix("UNI_")
        pattern = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}[name.removeprefix("NOT_")]
        return bool(re.match(pattern, char)) != name.startswith("NOT_")
    return False


def _seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one run, measured over several."""
    runs, start, end = 0, time.process_time(), time.monotonic() + MEASURED_SECONDS
    while not runs or time.monotonic() < end:
        work()
        runs += 1
    return (time.process_time() - start) / runs


def _wall(work: Callable[[], object]) -> float:
    start = time.monotonic()
    work()
    return time.monotonic() - start


def faults(case: Case) -> Iterator[str]:
    """Yield the attacks for which a pattern takes more than its share."""
    compiled = re.compile(
        case.pattern.encode("latin-1") if case.latin else case.pattern, case.flags
    )

    def work(name: str, attack: str, size: int, end: str) -> Callable[[], object]:
        text: Any = written(attack, size, end)
        text = text.encode() if case.latin else text
        return lambda: METHODS[name](compiled, text)

    for attack in attacks(case.pattern, case.flags):
        for name, end in product(case.methods, ENDS):
            if case.longest:
                bounded = work(name, attack, case.longest, end)
                if _wall(bounded) > MOST_SECONDS_CUT and _seconds(bounded) > MOST_SECONDS_CUT:
                    yield f"{name} {attack!r} {end!r}: over {MOST_SECONDS_CUT * 1e3:.0f} ms"
                continue
            quick = work(name, attack, SMALL, end)
            if _wall(quick) < QUICK_SECONDS:
                continue
            slow = work(name, attack, LARGE, end)
            if _wall(slow) < MOST_SECONDS / 2:
                continue
            small, large = _seconds(quick), _seconds(slow)
            if large > MOST_SECONDS or (large > MOST_SECONDS / 2 and large > MOST_RATIO * small):
                yield f"{name} {attack!r} {end!r}: {small * 1e3:.1f} → {large * 1e3:.1f} ms"


def main() -> None:
    """Judge the cases on stdin."""
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, float(sys.argv[1]))  # by default, it ends the process
        found = list(islice(faults(Case(*json.loads(line))), 3))
        print(json.dumps(found), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
