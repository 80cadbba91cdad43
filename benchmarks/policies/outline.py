"""What an outline costs and how long it is, for 5,000 lines of each language and for hostile text.

    python -m benchmarks.policies.outline
    python -m benchmarks.policies.outline --repeat 9 --json figures.json
    python -m benchmarks.policies.outline path/to/file.py ...

CPU milliseconds of one process, the best of several runs. The languages' sources are the samples
of the tests, repeated; name files to measure real ones, which are repeated up to 5,000 lines too.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path

from compaction.outlines.outline import outline

LINES = 5_000
AIM = 25.0
"""Milliseconds for 5,000 lines."""
SAMPLES = Path(__file__).parents[2] / "tests" / "compaction" / "outlined"


def repeated(text: str) -> str:
    """Repeat a text up to 5,000 lines."""
    times = LINES // max(text.count("\n"), 1) + 1
    return "\n".join((f"{text}\n" * times).split("\n")[:LINES])


def sources(named: list[Path]) -> dict[str, str]:
    """Return the sources by path."""
    if named:
        return {file.name: repeated(file.read_text(errors="replace")) for file in named}
    samples = sorted(SAMPLES.glob("*.txt"))
    return {one.stem: repeated(one.read_text().split("\n----\n")[0]) for one in samples}


def hostile() -> dict[str, str]:
    """Return texts designed to slow down a parser, by path."""
    chance = random.Random(7)
    noise = "".join(chance.choices("(){}[]\"'`abc\n :=<>#/*", k=500_000))
    functions = (f"function f{n}(a){{return{{b:[a,{n}]}}}}" for n in range(12_000))
    return {
        "one line of 1 MB.py": "x = " + "a+" * 500_000,
        "200 brackets deep.ts": "x = " + "[" * 200 + "]" * 200,
        "200,000 brackets.py": "(" * 200_000,
        "noise.cs": noise,
        "noise.py": noise,
        "minified.js": ";".join(functions),
        "15,000 open functions.ts": "def f():\n" * 15_000,
        "15,000 generics.cs": "a<\n" * 15_000,
    }


def measured(path: str, text: str, repeat: int) -> float:
    """Return the CPU milliseconds, the best of several runs."""
    best = float("inf")
    for _ in range(repeat):
        before = time.process_time()
        outline(text, path)
        best = min(best, (time.process_time() - before) * 1_000)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    given = parser.parse_args()
    out = sys.stdout.write
    figures = {}
    out("| text | ms | of its characters | rows |\n| --- | --- | --- | --- |\n")
    for path, text in sources(given.files).items():
        figures[path] = measured(path, text, given.repeat)
        answer = outline(text, path)
        mark = "" if figures[path] <= AIM else " (over the aim)"
        out(f"| {path} | {figures[path]:.1f}{mark} | {len(answer) / len(text):.1%} ")
        out(f"| {answer.count(chr(10)) + 1} |\n")
    for path, text in hostile().items() if not given.files else ():
        figures[path] = measured(path, text, 1)
        out(f"| {path} | {figures[path]:.1f} | | |\n")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
