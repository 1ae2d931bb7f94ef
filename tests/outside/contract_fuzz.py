#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""schemathesis over the whole contract: what is in openapi.yaml is what the server does.

    contract_fuzz.py DETENT NASTY_CHILD [PART_OF_A_NAME]

schemathesis is no package of Debian. It is looked for in build/venv and on the PATH; without it the
test is skipped (77). `scripts/setup-outside` installs it. CONTRACT_FUZZ_EXAMPLES is how many
requests are made for each operation, CONTRACT_FUZZ_SEED the seed. `make nightly` runs it.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = HERE.parents[1]
sys.path[:0] = [str(TREE / "tests/api"), str(TREE / "tests/e2e")]
SKIPPED = 77


def tool(name):
    beside = TREE / "build/venv/bin" / name
    return str(beside) if beside.exists() else shutil.which(name)


def main():
    program = tool("schemathesis")
    if not program:
        print("skipped: schemathesis is not installed; scripts/setup-outside installs it")
        return SKIPPED
    import contract  # pylint: disable=import-outside-toplevel
    import shop  # pylint: disable=import-outside-toplevel

    def test_schemathesis_finds_nothing():
        daemon, _ = contract.world()
        value = shop.token("admin")
        done = subprocess.run(
            [program, "--config-file", str(HERE / "contract.toml"), "run",
             str(TREE / "src/program/api/openapi.yaml"),
             "--url", f"http://127.0.0.1:{daemon.port}", "-H", f"Authorization: Bearer {value}",
             "--checks", "all", "--continue-on-failure", "--max-response-time", "30",
             "--max-examples", os.environ.get("CONTRACT_FUZZ_EXAMPLES", "40"),
             "--seed", os.environ.get("CONTRACT_FUZZ_SEED", "7"), "--phases",
             os.environ.get("CONTRACT_FUZZ_PHASES", "examples,coverage,fuzzing"),
             "--warnings", "off", "--exclude-path", "/v1/events"],
            env={**os.environ, "SCHEMATHESIS_HOOKS": "contract_hooks", "PYTHONPATH": str(HERE),
                 "NO_COLOR": "1"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        shop.check(done.returncode == 0, done.stdout)
        print(re.search(r"Test cases:\s*(.*)", done.stdout)[1], flush=True)
        daemon.stop()
    return shop.main({"test_schemathesis_finds_nothing": test_schemathesis_finds_nothing})


if __name__ == "__main__":
    sys.exit(main())
