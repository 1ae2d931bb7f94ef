# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""A client of HTTP/1.1 that hides nothing, and the reader of Server-Sent Events.

It says what it is told to say, byte for byte, and is strict in what it takes: an answer that is not
well formed is a failure of the server, not something to be made the best of.
"""
import json
import re
import socket
import threading

PATIENCE = 600  # for what hangs; the wait for an answer to a request
STATUS_LINE = re.compile(r"HTTP/1\.1 ([1-5]\d\d) [ -~]*\r\n")
HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([ -~\t]*?)[ \t]*\r\n")


class Gone(Exception):
    """The connection has ended before the answer had."""


class Wrong(Exception):
    """An answer that is not HTTP/1.1."""


class Answer:
    """Status, headers by lower-case name, and body."""

    def __init__(self, status, headers, body=b""):
        self.status, self.headers, self.body = status, headers, body

    @property
    def type(self):
        return self.headers.get("content-type", "").partition(";")[0]

    @property
    def json(self):
        return json.loads(self.body.decode())

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:600]!r}"


def request(method, target, body=None, headers=None):
    """The bytes of a request; a header that is None is left out."""
    fields = {"Host": "localhost"}
    if isinstance(body, (dict, list)):
        body = json.dumps(body)
    if body is not None:
        body = body.encode() if isinstance(body, str) else body
        fields |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    fields |= headers or {}
    lines = [f"{method} {target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


class Wire:
    """A connection, to a path or to a (host, port), that is opened when it is first needed."""

    def __init__(self, address, token=None, patience=PATIENCE):
        self.address, self.token, self.patience = address, token, patience
        self.socket = self.file = None

    def open(self):
        kind = socket.AF_UNIX if isinstance(self.address, str) else socket.AF_INET
        self.socket = socket.socket(kind)
        self.socket.settimeout(self.patience)
        try:
            self.socket.connect(self.address)
        except OSError as problem:
            self.close()
            raise Gone(str(problem)) from problem
        self.file = self.socket.makefile("rb")
        return self

    def close(self):
        if self.file:
            self.file.close()
        if self.socket:
            self.socket.close()
        self.socket = self.file = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        """Raw bytes. That the other side has hung up is seen when its answer is read."""
        if not self.socket:
            self.open()
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def line(self):
        try:
            line = self.file.readline(1 << 20)
        except OSError as problem:
            raise Gone(str(problem)) from problem
        if not line.endswith(b"\n"):
            raise Gone("the connection has ended")
        return line

    def read(self, size):
        try:
            data = self.file.read(size)
        except OSError as problem:
            raise Gone(str(problem)) from problem
        if len(data) < size:
            raise Gone("the connection has ended")
        return data

    def head(self):
        """Status and headers of the next answer, without its body."""
        line = self.line().decode("latin-1")
        match = STATUS_LINE.fullmatch(line)
        if not match:
            raise Wrong(f"a status line: {line!r}")
        headers = {}
        while (line := self.line().decode("latin-1")) != "\r\n":
            field = HEADER.fullmatch(line)
            if not field or field[1].lower() in headers:
                raise Wrong(f"a header: {line!r}")
            headers[field[1].lower()] = field[2]
        return Answer(int(match[1]), headers)

    def chunk(self):
        """The next chunk of a body; empty: its end."""
        size = int(self.line().strip(), 16)
        data = self.read(size)
        if self.read(2) != b"\r\n":
            raise Wrong("a chunk without its end")
        return data

    def answer(self, method="GET"):
        answer = self.head()
        while answer.status < 200:
            answer = self.head()
        if method == "HEAD" or answer.status in (204, 304):
            return answer
        if answer.type == "text/event-stream":
            # It may have no end.
            self.close()
        elif answer.headers.get("transfer-encoding") == "chunked":
            answer.body = b"".join(iter(self.chunk, b""))
        elif "content-length" in answer.headers:
            answer.body = self.read(int(answer.headers["content-length"]))
        else:
            answer.body = self.file.read()
        if answer.headers.get("connection") == "close":
            self.close()
        return answer

    def ask(self, method, target, body=None, headers=None):
        if self.token:
            headers = {"Authorization": f"Bearer {self.token}", **(headers or {})}
        self.send(request(method, target, body, headers))
        try:
            return self.answer(method)
        except Gone as problem:
            self.close()
            raise Gone(f"{method} {target}: {problem}") from problem

    def get(self, target, **headers):
        return self.ask("GET", target, headers=headers)

    def post(self, target, body, key=None):
        return self.ask("POST", target, body, {"Idempotency-Key": key})

    def hung_up(self):
        """Waits for the other side to close; whether it has said nothing before."""
        try:
            return self.file.read() == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False


class Event:
    """One event of a stream."""

    def __init__(self, name, identity, text):
        self.name, self.id, self.data = name, identity, json.loads(text) if text else None

    def __repr__(self):
        return f"{self.name} {self.id} {self.data}"


class Stream:
    """A stream of events. `next` gives one; None: the server has ended it as it should."""

    def __init__(self, address, target, token=None, last=None):
        self.begin(Wire(address, token), target, token, last)

    @classmethod
    def over(cls, wire, target, body=None):
        """One that begins on a connection that is there already; a POST, if there is a body."""
        stream = cls.__new__(cls)
        stream.begin(wire, target, body=body)
        return stream

    def begin(self, wire, target, token=None, last=None, body=None):
        self.wire, self.rest = wire, b""
        headers = {"Accept": "text/event-stream", "Last-Event-ID": last}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        method = "GET" if body is None else "POST"
        self.wire.send(request(method, target, body, headers))
        self.head = self.wire.head()
        if self.head.status != 200:
            raise Wrong(f"no stream: {self.head}")

    def line(self):
        while b"\n" not in self.rest:
            chunk = self.wire.chunk()
            if not chunk:
                return None
            self.rest += chunk
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode()

    def next(self):
        name, identity, data = "message", None, []
        while True:
            line = self.line()
            if line is None:
                return None
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if line == "":
                if data:
                    return Event(name, identity, "\n".join(data))
                name, identity = "message", None
            elif field == "event":
                name = value
            elif field == "id":
                identity = value
            elif field == "data":
                data.append(value)
            elif field not in ("", "retry"):
                raise Wrong(f"a line of a stream: {line!r}")

    def until(self, name):
        while (event := self.next()) and event.name != name:
            pass
        return event

    def close(self):
        self.wire.close()


def together(count, work):
    """Runs work(0) .. work(count - 1), each in a thread; raises what the first of them raised."""
    problems = []

    def one(number):
        try:
            work(number)
        except Exception as problem:  # pylint: disable=broad-except
            problems.append(problem)
    threads = [threading.Thread(target=one, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
