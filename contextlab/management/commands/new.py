"""`contextlab new`: create a strategy, importer or page from its recipe."""

import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError

from contextlab.recipes import NotPossible, write


class Command(BaseCommand):
    help = (
        "Write the files of a strategy, an importer or a page into the checkout in the current "
        "folder, from the recipes in docs/extending.md."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the kind and its name."""
        parser.add_argument("kind", choices=("strategy", "importer", "page"))
        parser.add_argument("name", help="lowercase letters, digits and underscores")

    def handle(self, *args: Any, kind: str, name: str, **options: Any) -> None:
        """Print the files written."""
        root = Path.cwd()
        try:
            files = write(root, kind, name)
        except NotPossible as problem:
            raise CommandError(str(problem)) from None
        for path in files:
            self.stdout.write(str(path.relative_to(root)))
        # In a separate process, because this one has already loaded the records.
        subprocess.run([sys.executable, "-m", "contextlab.lists"], cwd=root, check=True)
