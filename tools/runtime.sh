#!/bin/sh
# Fetches what the live ledger loads in the browser, into node_modules: tools/runtime.sh
#
# Without npm, or without a network, the site still builds and its widget says what it lacks. Where
# CI is set both must be there. A second run with the same lock fetches nothing.
set -eu

stamp=node_modules/installed
! cmp -s package-lock.json "$stamp" || exit 0

lacking() {
    [ -z "${CI:-}" ] || { echo "$1" >&2; exit 1; }
    echo "$1; the live ledger will read no configurations of the reader's own" >&2
    exit 0
}

command -v npm >/dev/null 2>&1 || lacking "npm was not found"
echo "fetching Python for the browser into node_modules"
log=$(npm ci --no-progress 2>&1) ||
    lacking "npm ci failed: $(echo "$log" | grep -i 'error' | head -n 1 | cut -c 1-160)"
cp package-lock.json "$stamp"
