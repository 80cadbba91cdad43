"""Log lines: what failed and where, without what was in it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import psycopg
import pytest
from django.db import OperationalError

from contextlab.operations.logs import OneLine
from tests.conftest import ROOT

ASKS = """
import django, logging, anthropic, boto3
django.setup()
logging.getLogger("ours").debug("begins")
try:
    model = anthropic.Anthropic(api_key="sk-key", base_url="http://127.0.0.1:9", max_retries=0)
    model.messages.create(
        model="m", max_tokens=5, messages=[{"role": "user", "content": "heron"}]
    )
except anthropic.APIConnectionError:
    pass
given = {"aws_access_key_id": "heron-key", "aws_secret_access_key": "b", "region_name": "here"}
bucket = boto3.client("s3", endpoint_url="http://127.0.0.1:9", **given)
try:
    bucket.list_objects_v2(Bucket="heron")
except Exception as error:
    assert type(error).__name__ == "EndpointConnectionError"
"""


def test_a_line_names_an_errors_class_code_and_frames(caplog: pytest.LogCaptureFixture) -> None:
    try:
        try:
            raise psycopg.errors.DeadlockDetected("quotes a row")
        except psycopg.Error as cause:
            raise OperationalError("quotes a row") from cause
    except OperationalError as error:
        logging.getLogger("x").error("job failed: %s", error, exc_info=True)
    line = OneLine().format(caplog.records[-1])
    assert "job failed: OperationalError 40P01" in line
    assert "[OperationalError 40P01 at test_log_lines.py" in line
    assert "quotes" not in line


def test_libraries_quote_no_request_at_any_level() -> None:
    environment = {
        **os.environ,
        "CONTEXTLAB_LOG_LEVEL": "DEBUG",
        "AWS_MAX_ATTEMPTS": "1",
        "DJANGO_SETTINGS_MODULE": "contextlab.settings",
    }
    asked = [sys.executable, "-c", ASKS]
    done = subprocess.run(asked, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "DEBUG ours begins" in done.stderr
    assert "heron" not in done.stderr and "127.0.0.1:9" not in done.stderr
