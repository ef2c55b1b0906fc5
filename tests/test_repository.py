"""The repository keeps its own promises: workflows, locks and set-up."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# What the oracles compare with is not locked: it differs by platform and is recorded in results/.
LOCKS = sorted(set(ROOT.glob("requirements*.txt")) - {ROOT / "requirements-oracles.txt"})
SCRIPTS = Path(sys.executable).parent


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def test_zizmor_finds_nothing_in_the_workflows():
    found = run(SCRIPTS / "zizmor", "--offline", "--pedantic", "--no-progress", *WORKFLOWS, cwd=ROOT)
    assert found.returncode == 0, found.stdout + found.stderr


def test_workflows_follow_the_published_schema():
    found = run(SCRIPTS / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_grants_the_least(path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {}
    assert "concurrency" in workflow
    for name, job in workflow["jobs"].items():
        assert "timeout-minutes" in job, name
        writes = {scope for scope, right in job["permissions"].items() if right == "write"}
        # Only the deployment may write, and it runs from main alone: a fork's pull request never gets there.
        assert not writes or job["if"] == "github.ref == 'refs/heads/main'", name
    assert "secrets." not in path.read_text()
    assert "pull_request_target" not in path.read_text()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_with_their_version_beside(path):
    uses = [line.strip() for line in path.read_text().splitlines() if "uses:" in line]
    assert uses
    for line in uses:
        assert re.fullmatch(r"(- )?uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_locks_hash_everything_and_name_no_host(path):
    text = path.read_text()
    assert "://" not in text and "index-url" not in text
    pins = re.findall(r"^[a-z0-9][^\n]*", text, flags=re.MULTILINE)
    assert pins
    for requirement in re.split(r"\n(?=[a-z0-9])", text.strip()):
        if not requirement.startswith("#"):
            assert "==" in requirement and "--hash=sha256:" in requirement, requirement[:60]


def test_the_npm_lock_hashes_everything_and_names_no_host():
    text = (ROOT / "package-lock.json").read_text()
    assert "://" not in text and '"resolved"' not in text
    packages = json.loads(text)["packages"]
    assert all(one["integrity"].startswith("sha512-") for path, one in packages.items() if path)
    wanted = json.loads((ROOT / "package.json").read_text())["dependencies"]
    assert packages[""]["dependencies"] == wanted
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())


@pytest.fixture
def checkout(tmp_path):
    """A folder in which tools/install.sh finds nothing but the Pythons that a test puts on PATH."""
    (tmp_path / "requirements.txt").write_text("")
    (tmp_path / "pyproject.toml").write_text("")
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("sh", "cat", "cmp", "grep", "tail", "cut", "rm", "basename", "mkdir", "printf"):
        found = run("sh", "-c", f"command -v {name}").stdout.strip()
        if found.startswith("/"):
            (commands / name).symlink_to(found)

    def install(**pythons):
        for name, body in pythons.items():
            command = commands / name
            command.write_text(f"#!/bin/sh\n{body}\n")
            command.chmod(0o755)
        return run(
            commands / "sh", ROOT / "tools" / "install.sh", "requirements.txt",
            cwd=tmp_path, env={"PATH": str(commands)},
        )

    return install


def one_line(result):
    assert result.returncode == 1
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    return lines[0]


def test_an_old_python_is_refused_in_one_line(checkout):
    line = one_line(checkout(python3='case "$2" in *version_info*) exit 1;; esac'))
    assert line.startswith("Python 3.11 or newer is needed and was not found")


def test_no_python_at_all_is_refused_in_one_line(checkout):
    assert one_line(checkout()).startswith("Python 3.11 or newer is needed")


def test_a_missing_venv_module_is_named_with_its_remedy(checkout):
    line = one_line(checkout(python3='case "$2" in *ensurepip*) exit 1;; esac'))
    assert line == (
        "python3 has no venv module; install it (Debian and Ubuntu: apt-get install python3-venv) "
        "and run make again"
    )


def test_a_failed_download_is_one_line_and_leaves_no_stamp(tmp_path):
    (tmp_path / "requirements.txt").write_text("absent-package-of-nobody==1.0 --hash=sha256:" + "0" * 64 + "\n")
    (tmp_path / "pyproject.toml").write_text("")
    result = run(
        "sh", ROOT / "tools" / "install.sh", "requirements.txt", cwd=tmp_path,
        env={**os.environ, "PYTHON": sys.executable, "PIP_NO_INDEX": "1", "UV_OFFLINE": "1"},
    )
    line = one_line(result)
    assert line.startswith("the packages of requirements.txt could not be installed: ")
    assert line.endswith("check the network and run make again")
    assert not (tmp_path / ".venv" / "installed-requirements.txt").exists()
