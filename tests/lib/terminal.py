# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""A program whose output is a terminal, and all that it prints.

The test keeps the program's side of the terminal open. If the exit of the program closed it, a read
could fail before the kernel has passed on the last lines: the reader finds the queue empty, the
program writes and exits, and the reader then sees only that the other side is closed.
"""
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios


class Terminal:
    """Runs the words with a terminal for output. One of 0 columns does not say how wide it is."""

    def __init__(self, words, env, columns=0, rows=24, keys=False):
        """With keys, it is also the input and the controlling terminal."""
        self.main, self.other = pty.openpty()
        fcntl.ioctl(self.other, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        both = {"stdout": self.other, "stderr": self.other}
        if keys:
            both = {"preexec_fn": self.control}
        self.process = subprocess.Popen(words, env=env, **both)
        self.ended = os.pidfd_open(self.process.pid)
        self.bytes = b""

    def control(self):
        """Runs in the child. It also copies the terminal to its streams."""
        os.login_tty(self.other)

    def read(self):
        """Adds what has come to the bytes; false: the program has ended and nothing is left."""
        ready, _, _ = select.select([self.main, self.ended], [], [])
        if self.main not in ready:
            # It ended between two looks, maybe after more output.
            os.set_blocking(self.main, False)
        try:
            part = os.read(self.main, 65536)
        except BlockingIOError:
            return False
        self.bytes += part
        return True

    def text(self):
        return self.bytes.decode(errors="replace")

    def end(self):
        """Reads to the end; the exit code."""
        while self.read():
            pass
        for descriptor in (self.main, self.other, self.ended):
            os.close(descriptor)
        return self.process.wait()
