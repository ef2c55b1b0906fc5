"""Resolves pyproject.toml into the hash-locked requirements files, for every supported Python.

The files name no registry: pip's and uv's own configuration says where packages come from.
"""

import subprocess
import sys
from pathlib import Path

LOCKS = {
    "requirements.txt": ["site", "build"],
    "requirements-test.txt": ["site", "build", "test"],
    "requirements-browser.txt": ["browser"],
    "requirements-audit.txt": ["audit"],
}

for lock, extras in LOCKS.items():
    command = [
        Path(sys.executable).parent / "uv", "pip", "compile", "pyproject.toml", "--quiet",
        "--universal", "--python-version", "3.11", "--generate-hashes", "--no-header",
        "--no-emit-index-url", "--no-emit-find-links", "--output-file", lock,
        *(argument for extra in extras for argument in ("--extra", extra)),
        *(["--constraint", "requirements.txt"] if lock != "requirements.txt" else []),
        *sys.argv[1:],
    ]
    subprocess.run(command, check=True)
    print(f"{lock}: locked")
