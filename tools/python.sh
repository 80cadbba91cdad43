#!/bin/sh
# Prints the first Python of 3.11 or newer that can make an environment, or says what is missing.
for python in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14}; do
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        echo "$python"
        exit 0
    fi
done
echo "Python 3.11 or newer (with its venv module) is missing: install python3 and, on Debian or Ubuntu, python3-venv." >&2
exit 1
