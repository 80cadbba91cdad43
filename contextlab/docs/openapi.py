"""The API's OpenAPI document without a server: `python -m contextlab.docs.openapi` prints it."""

from __future__ import annotations

import json
import os
import sys

import django


def main() -> None:
    """Print the document as JSON."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")
    django.setup()
    from sessions.api.urls import api
    from sessions.api.web.documents import document

    json.dump(document(api), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
