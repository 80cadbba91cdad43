"""Code blocks of the docs that no test runs, by the reason, with the page and how they begin."""

from __future__ import annotations

NOT_RUN: dict[str, dict[str, list[str]]] = {
    "It installs or builds; the checks run these targets on their own.": {
        "README.md": [
            "make run     # installs, builds, adds demo sessions, starts",
        ],
        "CONTRIBUTING.md": [
            "make setup   # .venv as locked in requirements.lock, pages b",
            ".venv/bin/python -m pytest -n 0 tests/sessions/record/test_i",
        ],
        "docs/index.md": [
            "make run     # installs, builds, adds demo sessions, starts",
        ],
        "docs/live/typescript.md": [
            "make clients/typescript/build/.built       # in a checkout",
        ],
    },
    "It needs an agent, a server or logs; commands are parsed (test_docs.py).": {
        "README.md": [
            ".venv/bin/contextlab wrap claude                           #",
            ".venv/bin/contextlab import ~/.claude/projects    # reads lo",
        ],
        "docs/erasure/erasure.md": [
            "contextlab archive --days 90                 # only counts",
        ],
        "docs/imports/importing.md": [
            "contextlab import ~/.claude/projects        # files and fold",
            "contextlab verify PATH…   # --json for one JSON object",
        ],
        "docs/index.md": [
            ".venv/bin/contextlab import ~/.claude/projects",
            ".venv/bin/contextlab wrap claude",
        ],
        "docs/live/mcp.md": [
            "contextlab mcp --http --port 8767 --url http://127.0.0.1:876",
        ],
        "docs/live/proxy.md": [
            ".venv/bin/contextlab wrap claude                      # reco",
            ".venv/bin/contextlab proxy --port 8766 --server http://127.0",
        ],
        "docs/operating.md": [
            "contextlab backup /mnt/backups/                # a new file,",
        ],
        "docs/operating/people.md": [
            "contextlab invite --team ops --email mara@example.org --url",
            "contextlab quota --team research --storage-bytes 20000000000",
        ],
        "docs/web/api.md": [
            "contextlab token create --team my-team --name laptop",
        ],
    },
    "A drawing, no program.": {
        "docs/architecture.md": [
            "browser ── frontend/ draws ──┐            agents, logs ──┐",
            "flowchart TB",
            "flowchart TB",
        ],
    },
    "A few lines out of a longer program; tests of the client call the same functions.": {
        "docs/budgets/budgets.md": [
            'session.reserve("call-7")              # raises OverBudget;',
        ],
        "docs/index.md": [
            "import anthropic",
            "import Anthropic from '@anthropic-ai/sdk';",
        ],
        "docs/web/api.md": [
            "from contextlab.client import wrap",
        ],
    },
    "Settings or a hook for another program, with names of its own.": {
        "docs/imports/importing.md": [
            "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:8765/api",
        ],
        "docs/imports/push.md": [
            "export CONTEXTLAB_URL=https://contextlab.example.com CONTEXT",
            "{",
            'logs=$(dirname "$(jq -r .transcript_path)"); contextlab push',
            'notify = ["sh", "-c", "contextlab push ~/.codex/sessions >/d',
        ],
        "docs/live/mcp.md": [
            "claude mcp add contextlab -e CONTEXTLAB_TOKEN=KEY -- context",
        ],
        "docs/live/ways-in.md": [
            "export OPENAI_BASE_URL=PROXY/manage/openai/v1",
        ],
        "docs/operating.md": [
            "contextlab migrate                                       # o",
            "export CONTEXTLAB_SECRET_KEY=$(openssl rand -hex 32) POSTGRE",
            "DATABASE_URL=postgres://contextlab:PASSWORD@127.0.0.1/contex",
            "cp deploy/systemd/* /etc/systemd/system/ && systemctl daemon",
        ],
        "docs/operating/objects.md": [
            "contextlab blobs                      # where content is",
            "pip install 'contextlab[s3]'",
        ],
        "docs/operating/people.md": [
            "CONTEXTLAB_OIDC_URL=https://id.example.org/realms/main",
        ],
        "docs/operating/settings.md": [
            '[models."house-model"]   # as agents send it, with or withou',
        ],
        "docs/policies/policies.md": [
            "name: coding-agents",
        ],
    },
    "What a command prints or answers, with numbers of its own.": {
        "docs/imports/importing.md": [
            "equal  runs/a.jsonl  claude-code: sessions 1, steps 66, prom",
        ],
    },
}
