"""PostgreSQL's own log: the doctor says whether statements, with content in them, get there."""

from __future__ import annotations

import pytest
from django.db import connection

from contextlab.operations.doctor import LOOKS, QUIET_LOG, WARNING
from tests.conftest import ROOT

LOUD = {
    "log_min_error_statement": "error",
    "log_error_verbosity": "default",
    "log_statement": "mod",
    "log_min_duration_statement": "100",
    "log_min_duration_sample": "100",
    "log_transaction_sample_rate": "0.5",
}


@pytest.mark.django_db
@pytest.mark.store
@pytest.mark.parametrize("loud", ["", *QUIET_LOG])
def test_the_doctor_names_what_puts_content_into_the_log(loud: str):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no log of statements")
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('is_superuser')")
        if cursor.fetchone()[0] != "on":
            pytest.skip("only a superuser sets these")
        for name, (quiet, *_) in QUIET_LOG.items():
            value = LOUD[name] if name == loud else quiet
            cursor.execute("SELECT set_config(%s, %s, true)", [name, value])
    state, text = LOOKS["postgres log"]()
    assert (state == WARNING) == bool(loud)
    assert [name for name in QUIET_LOG if name in text] == [loud][: bool(loud)]


def test_the_deployment_logs_no_statements():
    command = (ROOT / "compose.yaml").read_text().partition("command: [postgres,")[2]
    options = command.partition("]")[0]
    for name in ("log_min_error_statement", "log_error_verbosity"):
        assert f"-c, {name}={QUIET_LOG[name][0]}" in options
