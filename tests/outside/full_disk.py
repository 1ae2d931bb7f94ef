#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""A store on a disk that is full: /readyz says so, and goes on when there is room.

    full_disk.py DETENT NASTY_CHILD [PART_OF_A_NAME]
"""
import os
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "tests/api"), str(TREE / "tests/e2e"), str(TREE / "tests/lib")]
SKIPPED = 77

# pylint: disable=wrong-import-position
import small_disk  # noqa: E402

if not small_disk.can_mount():
    print("skipped: only root may mount a small disk")
    sys.exit(SKIPPED)

import shop  # noqa: E402
from shop import equal, wait_until  # noqa: E402


def test_full_disk_makes_the_daemon_not_ready():
    with small_disk.mounted("small"):
        shop.project(shop.COUNTERS.replace("sqlite:shop.db", "sqlite:small/shop.db"))
        daemon = shop.Daemon()
        with daemon.wire() as wire:
            shop.start(wire, "c-1", data={"number": 1})
            equal(wire.get("/readyz").status, 200)
            small_disk.fill("small/filler")
            answer = wire.get("/readyz")
            equal((answer.status, answer.json["why"]), (503, "the disk of the store is full"))
            equal([n for n in os.listdir("small") if "room" in n], [])
            os.unlink("small/filler")
            wait_until(lambda: wire.get("/readyz").status == 200, "it is ready again")
            equal(shop.add(wire, "c-1", 2).status, 200)
        daemon.stop()


if __name__ == "__main__":
    sys.exit(shop.main(globals()))
