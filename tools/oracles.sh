#!/bin/sh
# Compares the mechanisms and the ledger with other packages and records the mechanisms' differences in
# results/oracles.json. The packages are large, so they have an environment of their own.
set -eu

stop() { echo "$1" >&2; exit 1; }

environment=.venv-oracles
log=$environment/install.log
if ! cmp -s requirements-oracles.txt "$environment/installed.txt"; then
    base=${PYTHON:-python3}
    [ ! -x .venv/bin/python ] || base=.venv/bin/python
    echo "installing requirements-oracles.txt into $environment"
    rm -rf "$environment"
    "$base" -m venv "$environment" || stop "$environment could not be created (see above)"
    "$environment/bin/python" -m pip --disable-pip-version-check install -r requirements-oracles.txt \
        >"$log" 2>&1 ||
        stop "the packages of requirements-oracles.txt could not be installed: $(grep -i error "$log" | tail -n 1 | cut -c 1-160) (whole log: $log); check the network and run make again"
    cp requirements-oracles.txt "$environment/installed.txt"
fi

# The files are named, because their names keep them out of `make test`; and the settings of the
# other tests, which need other packages, are left aside.
PYTHONPATH=src exec "$environment/bin/python" -m pytest --confcutdir=tests/oracles \
    -o filterwarnings=default tests/oracles/oracle_*.py
