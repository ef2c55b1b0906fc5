#!/bin/sh
# Installs locked requirements into .venv: tools/install.sh REQUIREMENTS...
#
# A second run with the same requirements installs nothing and starts at once. Everything
# that can be wrong on a new machine ends in one line that says what to do.
set -eu

stop() { echo "$1" >&2; exit 1; }

find_python() {
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

environment=.venv
python=$environment/bin/python
log=$environment/install.log

# A stamp holds what an earlier run installed, word for word: it compares contents, not times.
stamp() { echo "$environment/installed-$(basename "$1")"; }
wanted() { cat "$1" pyproject.toml; echo "$PWD"; }
current() {
    for file in "$@"; do
        [ -f "$(stamp "$file")" ] && wanted "$file" | cmp -s - "$(stamp "$file")" || return 1
    done
}

if "$python" -c '' 2>/dev/null; then
    ! current "$@" || exit 0
else
    base=$(find_python)
    [ -n "$base" ] || stop "Python 3.11 or newer is needed and was not found (tried: ${PYTHON:-python3, python3.14 … python3.11, python}); install it, or name it: make PYTHON=/path/to/python3.11 …"
    "$base" -c 'import venv, ensurepip' 2>/dev/null ||
        stop "$base has no venv module; install it (Debian and Ubuntu: apt-get install python3-venv) and run make again"
    echo "creating $environment with $("$base" --version)"
    rm -rf "$environment"
    "$base" -m venv "$environment" || stop "$environment could not be created (see above); remove it and run make again"
fi

echo "installing $* into $environment"
arguments=
for file in "$@"; do arguments="$arguments -r $file"; done
: >"$log"
if command -v uv >/dev/null 2>&1; then
    uv pip install --python "$python" --require-hashes $arguments >>"$log" 2>&1 &&
        uv pip install --python "$python" --no-deps --no-build-isolation --editable . >>"$log" 2>&1 || failed=yes
else
    "$python" -m pip --disable-pip-version-check install --quiet --require-hashes $arguments >>"$log" 2>&1 &&
        "$python" -m pip --disable-pip-version-check install --quiet --no-deps --no-build-isolation --editable . >>"$log" 2>&1 || failed=yes
fi
[ "${failed:-no}" = no ] ||
    stop "the packages of $* could not be installed: $(grep -i error "$log" | tail -n 1 | cut -c 1-160) (whole log: $log); check the network and run make again"

for file in "$@"; do wanted "$file" >"$(stamp "$file")"; done
