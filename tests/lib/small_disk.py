# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""A disk of 4 MiB that a test may fill. Only root can have one."""
import contextlib
import os
import subprocess
import tempfile
from pathlib import Path


def mount(folder):
    """Makes it there, in memory; false: this user may not."""
    Path(folder).mkdir()
    return subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder],
                          capture_output=True, check=False).returncode == 0


def unmount(folder):
    subprocess.run(["umount", "-l", folder], check=False)


def can_mount():
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/small"
        is_mounted = mount(place)
        if is_mounted:
            unmount(place)
    return is_mounted


@contextlib.contextmanager
def mounted(folder):
    if not mount(folder):
        raise OSError(f"{folder} cannot be mounted")
    try:
        yield
    finally:
        unmount(folder)


def fill(path):
    """With a file there, until there is no room."""
    with open(path, "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass
