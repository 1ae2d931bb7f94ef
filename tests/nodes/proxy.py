# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""A TCP proxy before a PostgreSQL server that cuts a connection at a given byte.

    node --- TCP ---> Proxy --- socket ---> server
                 up ------->
                 <----- down

It counts what goes through in each direction, on all connections together, since it was last told
to. When the byte it was told of has gone through, the connection is cut: nothing further passes in
either direction. "close" ends both sides as a process that ends does, "reset" as one that is gone,
"stall" leaves them open, as a network that has lost its way, until it is healed.
"""
import select
import socket
import struct
import threading

UP, DOWN = 0, 1


class Proxy:
    def __init__(self, target):
        self.target = str(target)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.counts, self.cut = [0, 0], None
        self.cuts, self.stalled = 0, []
        threading.Thread(target=self.accept, daemon=True).start()

    def host(self):
        """For a URL."""
        return f"host=127.0.0.1&port={self.port}&sslmode=disable&gssencmode=disable"

    def arm(self, direction=None, after=0, manner="close"):
        """Counts from here on, and cuts after so many bytes in that direction; None: never."""
        with self.lock:
            self.counts = [0, 0]
            self.cut = None if direction is None else (direction, after, manner)

    def heal(self):
        """Ends what is stalled."""
        with self.lock:
            ended, self.stalled = self.stalled, []
        for pair in ended:
            for end in pair:
                end.close()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(self.target)
            except OSError:
                near.close()
                far.close()
                continue
            threading.Thread(target=self.carry, args=((near, far),), daemon=True).start()

    def allow(self, direction, size):
        """How many of these bytes may pass, and how the connection is cut then, if it is."""
        with self.lock:
            manner = None
            if self.cut and self.cut[0] == direction:
                left = self.cut[1] - self.counts[direction]
                if size >= left:
                    size, manner, self.cut = left, self.cut[2], None
                    self.cuts += 1
            self.counts[direction] += size
        return size, manner

    def carry(self, pair):
        try:
            while True:
                for end in select.select(pair, [], [])[0]:
                    direction = UP if end is pair[0] else DOWN
                    data = end.recv(65536)
                    size, manner = self.allow(direction, len(data)) if data else (0, "close")
                    pair[1 - direction].sendall(data[:size])
                    if manner:
                        self.end(pair, manner)
                        return
        except OSError:
            self.end(pair, "close")

    def end(self, pair, manner):
        if manner == "stall":
            with self.lock:
                self.stalled.append(pair)
            return
        for end in pair:
            if manner == "reset" and end.family == socket.AF_INET:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.close()
