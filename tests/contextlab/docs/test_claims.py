"""Published numbers beside ours: every line has a verdict, and ours are read from the code."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from benchmarks.policies import claims
from benchmarks.policies.claims import MISSED, REACHED, SESSIONS, VERDICTS, verdict
from benchmarks.policies.claims_measured import Claim, code
from benchmarks.policies.claims_published import CLAIMS, DESIGN, MODEL
from compaction.advice import use_lint
from compaction.policies.presets import PRESETS
from sessions import importers
from sessions.actions.lab.unstored import recording_of_log
from tests.conftest import ROOT

SAMPLE = ROOT / "tests/sessions/importers/samples/claude-code/claude-code.jsonl"
ALL = tuple(chain.from_iterable(CLAIMS.values()))
SETTING = re.compile(r"`([a-z-]+): ([a-z]+)\.([a-z_]+)`")
SETTINGS = [claim for claim in ALL if SETTING.fullmatch(claim.ours.how)]
CITED = [one for claim in ALL if (one := re.fullmatch(r'\[.+\]\((.+)\): "(.+)"', claim.ours.how))]


def test_every_line_has_a_verdict_of_the_known_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (session,) = importers.parse(SAMPLE.read_bytes(), SAMPLE.name).sessions
    recording = recording_of_log(session)
    assert recording is not None
    rows = [claims.row_of_recording(recording)]
    monkeypatch.setattr(claims, "recorded", lambda paths: rows)
    monkeypatch.setattr(claims, "commit_and_date", lambda: "abc1234, 2026-01-02")
    monkeypatch.setattr("sys.argv", ["claims", "logs", "--out", str(tmp_path / "claims.md")])
    claims.main()
    text = (tmp_path / "claims.md").read_text()
    assert "(abc1234, 2026-01-02), with 1 recorded session." in text
    lines = list(claims.judged(rows))
    assert len(lines) == len(ALL) == capsys.readouterr().out.count("\n") > 100
    assert all(found.startswith(VERDICTS) for *_, found in lines)
    assert SESSIONS not in {found for *_, found in lines}
    listed = [one for one in lines if claims.is_listed(one)]
    assert len(listed) > 40 and all(claim.claim in text for _, claim, *_ in listed)
    assert f"also prints the {len(lines) - len(listed)} that our code reaches" in " ".join(
        text.split()
    )
    rows_shown = re.findall(r"^\| .+ \| .* \| .+ \|$", text, re.MULTILINE)
    assert sum("missed" in row for row in rows_shown) == sum(
        one[3].startswith(MISSED) for one in lines
    )
    sources = (ROOT / "docs/sources.md").read_text()
    assert all(f"\n## {source}\n" in sources for source in CLAIMS)


@pytest.mark.parametrize("claim", SETTINGS, ids=lambda claim: claim.ours.how)
def test_a_setting_is_as_published_and_read_from_the_code(
    claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    (name, strategy, field) = SETTING.fullmatch(claim.ours.how).groups()
    policy = PRESETS[name]
    assert verdict(claim, claim.ours.value([])).startswith((REACHED, DESIGN))
    found = set()
    for value in (0, 1_000_000):
        changed = {field: value}
        if strategy == "recite":
            other = replace(policy, recite=replace(policy.recite, **changed))
        else:
            steps = (_changed(step, changed) if step.strategy == strategy else step
                     for step in policy.steps)  # fmt: skip
            other = replace(policy, steps=tuple(steps))
        monkeypatch.setitem(PRESETS, name, other)
        found.add(verdict(claim, claim.ours.value([])) == REACHED)
    assert False in found


def _changed(step: Any, fields: dict[str, int]) -> Any:
    return replace(step, parameters=replace(step.parameters, **fields))


def test_a_changed_constant_changes_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    (claim,) = (one for one in ALL if one.claim == "a hard budget is too small at")
    assert verdict(claim, claim.ours.value([])) == REACHED
    monkeypatch.setattr(use_lint, "SMALL", 9_000)
    assert verdict(claim, claim.ours.value([])) == "missed by 1,000 tokens"


@pytest.mark.parametrize(("place", "words"), [one.groups() for one in CITED])
def test_quoted_figures_are_on_their_pages(place: str, words: str) -> None:
    text = (Path(ROOT / "benchmarks/policies/reports") / place).read_text()
    assert words in " ".join(text.split())


@pytest.mark.parametrize(
    ("goal", "unit", "why", "value", "found"),
    [
        ((0, 5), "steps", "", 5, REACHED),
        ((0, 5), "steps", "", 6, "missed by 1 step"),
        ((0.5, 1), "%", "", 0.375, "missed by 12.5 points"),
        ((0.5, 1), "%", "as we chose", 0.4, "differs by design: as we chose"),
        ((0, 5), "steps", "", None, SESSIONS),
        (None, "", MODEL, 3, MODEL),
    ],
)
def test_verdicts(
    goal: tuple[float, float] | None, unit: str, why: str, value: float | None, found: str
) -> None:
    claim = Claim("it takes", "5", code("", lambda: 0), goal, unit, why)
    assert verdict(claim, value) == found
