#!/usr/bin/env python
"""Runs a management command from a checkout."""

import os
import sys

from django.core.management import execute_from_command_line

from contextlab.operations.permissions import keep_private

if __name__ == "__main__":
    keep_private()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")
    execute_from_command_line(sys.argv)
