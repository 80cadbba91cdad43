"""Every code block of the README and the docs is run by a test, or listed with a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.conftest import ROOT
from tests.contextlab.docs.not_run import NOT_RUN
from tests.contextlab.docs.test_docs import PAGES, tokens
from tests.contextlab.docs.test_requests import requests_in

RUN = {
    ("README.md", "python"): "tests/contextlab/client/test_examples.py",
    ("docs/live/typescript.md", "ts"): "tests/contextlab/client/typescript/test_shown_programs.py",
    ("docs/web/api.md", "json"): "tests/contextlab/docs/test_requests.py",
}
"""The test that runs all blocks of a page in a language."""
BEGINNING = 60
"""Characters by which the list names a block."""


def blocks() -> Iterator[tuple[str, str, str]]:
    """Page, language and beginning of each block without requests, which test_requests.py sends;
    those of a tab are indented, with their fence."""
    for page in PAGES:
        for token in tokens(page):
            if token.type not in ("fence", "code_block") or requests_in(token):
                continue
            lines = [line.strip() for line in token.content.strip().splitlines()]
            said = next((line for line in lines if line and not line.startswith("```")), "")
            name = str(page.relative_to(ROOT))
            yield name, token.info.strip(), said[:BEGINNING].strip()


def test_a_block_is_run_or_listed() -> None:
    found = Counter((page, said) for page, info, said in blocks() if (page, info) not in RUN)
    listed = Counter(
        (page, said)
        for pages in NOT_RUN.values()
        for page, beginnings in pages.items()
        for said in beginnings
    )
    assert found - listed == Counter(), "neither run nor listed: see not_run.py"
    assert listed - found == Counter(), "listed, and not in the docs"


def test_what_runs_a_block_reads_its_page() -> None:
    known = {(page, info) for page, info, _ in blocks()}
    assert RUN.keys() <= known
    for (page, _), test in RUN.items():
        assert page.removeprefix("docs/") in (ROOT / test).read_text(), page
