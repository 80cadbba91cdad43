#!/bin/sh
# Says what is missing when the pages cannot be built here.
if command -v npm >/dev/null &&
    node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null; then
    exit 0
fi
echo "Node 20.19 or newer (with npm) is missing: install it from https://nodejs.org; only building the pages needs it." >&2
exit 1
