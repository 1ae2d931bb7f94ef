# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs a flow that is killed with SIGKILL again and again, until it completes."""
import random
import subprocess
import sys
from pathlib import Path

from patience import HANG


class TooLate(Exception):
    """A run was killed after it had written its last fact: the next start has begun a new run."""


def number_of_run(flow):
    latest = Path(".detent/flows", flow, "latest")
    return int(latest.read_text()) if latest.exists() else 0


def run_killed(detent, flow, kills):
    """Runs the flow in this folder until it completes; kills it as often as given, at random times.
    Returns how often it was killed: less often if it completes before."""
    killed = 0
    while True:
        before = number_of_run(flow)
        program = subprocess.Popen([detent, "flow", "run", flow + ".flow"],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            wait = random.uniform(0.01, 0.08) if killed < kills else HANG
            said, _ = program.communicate(timeout=wait)
        except subprocess.TimeoutExpired:
            program.kill()
            program.communicate()
            killed += 1
            said = None
        if before and number_of_run(flow) > before:
            raise TooLate
        if said is None:
            continue
        if program.returncode != 0:
            sys.exit(f"{flow}: exit code {program.returncode} after {killed} kills: "
                     f"{said.decode()}")
        return killed
