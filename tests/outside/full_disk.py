#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""A store on a disk that is full: /readyz says so, and goes on when there is room.

    full_disk.py DETENT NASTY_CHILD [PART_OF_A_NAME]
"""
import os
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "tests/api"), str(TREE / "tests/e2e")]
SKIPPED = 77


def mounted(folder):
    """A disk of 4 MiB there, in memory; false: this user may not."""
    Path(folder).mkdir()
    return subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder],
                          capture_output=True, check=False).returncode == 0


def fill(path):
    with open(path, "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass


def main():
    import shop  # pylint: disable=import-outside-toplevel
    from shop import check, equal, wait_until  # pylint: disable=import-outside-toplevel

    def test_a_full_disk_is_not_ready_and_says_so():
        check(mounted("small"), "it cannot be mounted")
        try:
            shop.project(shop.COUNTERS.replace("sqlite:shop.db", "sqlite:small/shop.db"))
            daemon = shop.Daemon()
            with daemon.wire() as wire:
                shop.start(wire, "c-1", data={"number": 1})
                equal(wire.get("/readyz").status, 200)
                fill("small/filler")
                answer = wire.get("/readyz")
                equal((answer.status, answer.json["why"]),
                      (503, "the disk of the store is full"))
                equal([n for n in os.listdir("small") if "room" in n], [])
                os.unlink("small/filler")
                wait_until(lambda: wire.get("/readyz").status == 200, "it is ready again")
                equal(shop.add(wire, "c-1", 2).status, 200)
            daemon.stop()
        finally:
            subprocess.run(["umount", "-l", "small"], check=False)

    if os.geteuid() != 0 or not can_mount():
        print("skipped: only root may mount a small disk")
        return SKIPPED
    return shop.main({"test_a_full_disk_is_not_ready_and_says_so":
                      test_a_full_disk_is_not_ready_and_says_so})


def can_mount():
    import tempfile  # pylint: disable=import-outside-toplevel
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/small"
        if not mounted(place):
            return False
        subprocess.run(["umount", place], check=False)
    return True


if __name__ == "__main__":
    sys.exit(main())
