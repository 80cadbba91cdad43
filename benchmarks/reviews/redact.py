"""How fast secrets are masked, how many are found, and how often clean code is taken for one.

Run: python -m benchmarks.reviews.redact. Prints numbers only.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
from compaction.redaction.redact import redact, secrets  # noqa: E402
from tests.compaction.secret_samples import samples  # noqa: E402

HOSTILE = {
    "letters": "a",
    "digits": "1",
    "almost addresses": "1.1.1.1 ",
    "almost mail": "a@",
    "addresses": "a@b.co ",
    "colons": ":",
    "begin of keys": "-----BEGIN PRIVATE KEY-----\n",
    "assignments": 'password="',
    "base64 lines": "aZ9" * 15 + "\n",
    "emoji": "😀",
}


def _recall(seeds: int) -> None:
    total = missed = 0
    for seed in range(seeds):
        for _, _, text, secret in samples(seed):
            masked = redact(text).text
            total += 1
            missed += secret in masked or json.dumps(secret)[1:-1] in masked
    print(f"recall: {total - missed} of {total} synthetic secrets ({1 - missed / total:.2%})")


def _alarms(name: str, folder: Path, endings: tuple[str, ...]) -> None:
    files = [
        file
        for file in folder.rglob("*")
        if file.suffix in endings
        and not {"test", "tests", "site-packages", "node_modules", ".venv"} & set(file.parts)
    ]
    texts = [file.read_bytes() for file in files]
    size = sum(map(len, texts)) / 1e6
    begun = time.perf_counter()
    kinds = Counter(found.kind for text in texts for found in secrets(text))
    taken = time.perf_counter() - begun
    others = sum(kinds.values()) - kinds["EMAIL"]
    print(f"{name}: {len(files)} files, {size:.1f} MB, {size / taken:.0f} MB/s")
    print(f"  {others / size:.2f} masks per MB besides e-mail addresses; {dict(kinds)}")


def _speed() -> None:
    for name, piece in HOSTILE.items():
        speeds = []
        for size in (250_000, 1_000_000):
            text = piece * (size // len(piece.encode()))
            begun = time.perf_counter()
            redact(text)
            speeds.append(size / 1e6 / (time.perf_counter() - begun))
        print(f"hostile, {name}: {speeds[0]:.1f} MB/s for 250 kB, {speeds[1]:.1f} for 1 MB")


def _held_up() -> None:
    """The longest time in which another thread did not run, while 20 MB are searched."""
    text, gaps, done = b"x = compute(y)  # plain\n" * 850_000, [0.0], threading.Event()

    def tick() -> None:
        last = time.perf_counter()
        while not done.is_set():
            time.sleep(0.0005)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    other = threading.Thread(target=tick)
    other.start()
    begun = time.perf_counter()
    secrets(text)
    taken = time.perf_counter() - begun
    done.set()
    other.join()
    print(
        f"threads: {taken:.2f} s for 20 MB, another thread waited {max(gaps) * 1000:.0f} ms at most"
    )


def main() -> None:
    """All numbers, one line each."""
    _recall(10)
    _alarms("Python's standard library", Path(json.__file__).parents[1], (".py",))
    _alarms("this repository", ROOT, (".py", ".md", ".ts", ".html", ".css"))
    _speed()
    _held_up()


if __name__ == "__main__":
    main()
