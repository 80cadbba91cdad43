"""`contextlab new`: create a strategy, importer or page from its recipe."""

import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError

from contextlab.docs.recipes import SUBJECT, InUse, NotPossible, write


def in_use(kind: str) -> InUse:
    """The orders and shortcuts of the records of a kind."""
    if kind == "strategy":
        from compaction.strategies import STRATEGIES

        return InUse({one.order for one in STRATEGIES.values()})
    if kind == "importer":
        from sessions.importers import IMPORTERS

        return InUse({one.order for one in IMPORTERS.values()})
    from sessions.views.web.pages import pages

    links = [page.link for page in pages() if page.link is not None]
    return InUse({link.order for link in links}, {link.keys[-1] for link in links})


NEXT = """
Next:
1. Replace the example and its sentences in these files; see docs/extending.md.
2. .venv/bin/python -m pytest {tests}
3. {last}"""

LAST = {
    "strategy": "make lists, then make check",
    "importer": "make lists, then make check",
    "page": "make dev shows it in the navigation; then make check",
}


class Command(BaseCommand):
    help = (
        "Write the files of a strategy, an importer or a page. They go into the checkout in the "
        "current folder, from docs/recipes."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the kind, its name and its subject."""
        parser.add_argument("kind", choices=tuple(LAST))
        parser.add_argument("name", help="lowercase letters, digits and underscores")
        parser.add_argument(
            "--subject",
            help=f"the folder of a page in sessions/views, such as tools (default: {SUBJECT})",
        )

    def handle(self, *args: Any, kind: str, name: str, subject: str | None, **options: Any) -> None:
        """Print the files written, and what to do next."""
        if subject and kind != "page":
            raise CommandError("Only a page has a --subject.", returncode=2)
        root = Path.cwd()
        try:
            files = write(root, kind, name, subject or SUBJECT, in_use(kind))
        except NotPossible as problem:
            raise CommandError(str(problem)) from None
        paths = [str(path.relative_to(root)) for path in files]
        for path in paths:
            self.stdout.write(path)
        self.stdout.flush()
        if kind != "page":
            # In a separate process, because this one has already loaded the records.
            subprocess.run([sys.executable, "-m", "contextlab.docs.lists"], cwd=root, check=True)
        tests = next(path for path in paths if Path(path).name.startswith("test_"))
        if kind == "importer":
            tests = f"{Path(tests).parent} -k '{name} or {name.replace('_', '-')}'"
        self.stdout.write(NEXT.format(tests=tests, last=LAST[kind]))
