#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""The first five minutes, as a new user has them: what the pages say is typed, word for word.

    first.py DETENT NASTY_CHILD SOURCE_TREE [PART_OF_A_NAME]

The frame is that of up.py. A block is typed from its top, in an empty folder, with two terminals:

    command                      runs to its end, and must succeed; `cd` holds for what follows
    detent up                    stays in the first terminal until it serves; is ended at the end
    detent why ID                again, until an attempt has failed
    detent watch ID              stays until it has said where the instance is; then Ctrl-C
    a   b                        two commands: three blanks are between them
    kill -9 the daemon; a        what is meant is done; then a
    # to the end of the line     is a comment
"""
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

TREE = Path(sys.argv.pop(3)).resolve()

import up  # pylint: disable=wrong-import-position
from up import PATIENCE, Up, check, environment, equal, wait_until

# As it was promised, to the letter.
PROMISE = Path(__file__).with_suffix(".txt").read_text()
KILL = "kill -9 the daemon"
PAGES = ("README.md", "docs/start.md")
# Which lines of PAGES are not typed here, and what does instead.
ELSEWHERE = {
    "make demo": "e2e.demo",
    "make run": "the tour, below",
    "make test": "this is it",
    "make install": "tidy.package",
    "export": "tidy.package",
    "cd && detent new coffee --c": "e2e.program",
    "detent new sales --from flow": "the flow, below",
}


class Typist:
    """Types blocks; what each command printed is in `said`, in their order."""

    def __init__(self, env=None):
        # Any port, since tests run side by side; the rest is as it comes.
        self.env = {"DETENT_LISTEN": "127.0.0.1:0", "NO_COLOR": "1", **(env or {})}
        self.up, self.said = None, []
        self.here = Path(os.getcwd(), ".here")

    def run(self, command):
        done = subprocess.run(
            ["sh", "-c", command + '\nr=$?; pwd >"$HERE"; exit $r'], capture_output=True,
            env=environment({**self.env, "HERE": str(self.here)}), text=True,
            timeout=PATIENCE, check=False)
        check(done.returncode == 0, f"{command}: exit code {done.returncode}: {done.stderr}")
        os.chdir(self.here.read_text().strip())
        return up.SANITIZER.sub("", done.stdout + done.stderr)

    def start(self):
        if self.up:
            self.up.process.wait(PATIENCE)
        self.up = Up(env=self.env)
        wait_until(lambda: self.up.process.poll() is not None or any(
            "In another terminal" in line for line in self.up.talk), "detent up serves")
        check(self.up.process.poll() is None, self.up.shown())
        return "\n".join(self.up.talk)

    def watch(self, command):
        watch = subprocess.Popen(command.split(), env=environment(self.env), text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = watch.stdout.readline()
        watch.send_signal(signal.SIGINT)
        said += watch.communicate(timeout=PATIENCE)[0]
        equal(watch.returncode, 130)
        return said

    def failure(self, command):
        """An attempt that has just begun may be the newest one."""
        said = self.run(command)
        return re.search(r"is tried again in \S+, after attempt \d", said) and said

    def type(self, command):
        if command == KILL:
            self.up.send(signal.SIGKILL)
            return ""
        if command == "detent up":
            return self.start()
        if command.startswith("detent why "):
            return wait_until(lambda: self.failure(command), "an attempt that has failed")
        return (self.watch if command.startswith("detent watch ") else self.run)(command)

    def type_all(self, text):
        for line in filter(None, (re.sub(r"(^|\s)# .*", "", line).rstrip()
                                  for line in text.splitlines())):
            for words in re.split(r"\s{3,}", line):
                killed, _, rest = words.partition("; ")
                for command in [killed, rest] if killed == KILL else [words]:
                    self.said.append((command, self.type(command)))

    def saying(self, start):
        found = [said for command, said in self.said if command.startswith(start)]
        check(found, f"nobody has typed {start}")
        return found

    def end(self):
        self.up.stop()


def blocks(text, language=""):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.M | re.S)


def hold_the_promise(typist):
    """What is so after the story, wherever it was told."""
    for banner in typist.saying("detent up"):
        link = re.search(r"Console: (http://127\.0\.0\.1:\d+/)#code=\S+", banner)
        check(link, banner)
    with urllib.request.urlopen(link[1], timeout=PATIENCE) as page:
        check(page.status == 200 and b"<script" in page.read())
    check(Path("detent.db").exists())
    equal(typist.saying("detent start"), ["o-1: pending\n"])
    equal(typist.saying("detent send"), ["o-1: pay: pending -> charging\n"])
    check(typist.saying("detent watch")[0].startswith("order o-1 is charging"))
    attempts = [int(re.search(r"after attempt (\d+) of 8 ", why)[1])
                for why in typist.saying("detent why")]
    equal(attempts, sorted(attempts))
    why = typist.saying("detent why")[-1]
    for part in ("order o-1 is charging, for ", "takes      cancel\n",
                 "awaits     charged, declined,", "effects    charge_card is tried again in ",
                 "HTTP 503: the bank is closed"):
        check(part in why, f"no {part!r} in {why}")
    check("7 cases: 7 passed, 0 failed; 14d" in typist.saying("detent test")[0])


def test_first_steps_work_as_promised():
    typist = Typist()
    typist.type_all(PROMISE)
    hold_the_promise(typist)
    equal(typist.said[0][1].split("Next")[0].split(), [
        "order/order.fsm", "order/detent.yaml", "order/order.test.yaml", "order/README.md"])
    typist.end()


def open_bank():
    """Nobody waits a minute here: the same bank, with shorter waits; it thinks about cards with a 9
    at the front until we have decided, too."""
    text = Path("detent.yaml").read_text()
    for old, new in (("backoff: 2s..1m", "backoff: 1ms..5ms"),
                     ("case $call in\n", "case $call in\n            "
                      "*'\"card\":\"9'*) until [ -e decided ]; do sleep 0.01; done ;;\n")):
        check(text.count(old) == 1, old)
        text = text.replace(old, new)
    Path("detent.yaml").write_text(text)


def test_the_order_is_paid_when_the_bank_opens_and_a_bad_card_is_declined():
    typist = Typist()
    typist.type_all("detent new order && cd order")
    open_bank()
    typist.type_all("""detent up
detent start order o-1 --data '{"total": 42}'
detent send o-1 pay --payload '{"card":"4242","cents":1999}'
detent start order o-2
detent send o-2 pay --payload '{"card":"0042","cents":1999}'
detent start order o-3
detent send o-3 pay --payload '{"card":"9242","cents":1999}'
detent send o-3 cancel
""")
    Path("decided").touch()
    for pattern in ("o-1: charge_card failed, attempt 5: .*HTTP 503", "o-1: charging -> paid",
                    "o-2: charging -> pending .declined", "o-3: cancelling -> cancelled"):
        typist.up.wait_for(pattern)
    equal(typist.up.index("o-1: charge_card failed, attempt 6"), -1)
    check('/order/o-1/1/0"' in typist.run("detent get o-1"))
    typist.end()


def test_every_new_template_works_as_its_readme_says():
    Typist().type_all("detent new job && cd job")
    text = Path("detent.yaml").read_text()
    check("[sleep, 1]" in text)
    Path("detent.yaml").write_text(text.replace("[sleep, 1]", "[sleep, 0]"))
    first, second = blocks(Path("README.md").read_text())
    typist = Typist()
    check(first.startswith("detent up "), first)
    typist.type_all(first.splitlines()[0] + "\n" + second.replace("detent watch one\n", ""))
    typist.up.wait_for("one: working -> done")
    typist.end()


def test_readme_of_a_new_order_is_correct():
    typist = Typist()
    typist.type_all("detent new order && cd order")
    text = Path("README.md").read_text()
    for block in blocks(text):
        typist.type_all(block)
    hold_the_promise(typist)
    equal(len(typist.saying("detent why")), 2)
    typist.end()


def test_tutorial_is_correct():
    text = (TREE / "docs/start.md").read_text()
    typist = Typist()
    typist.type_all("".join(blocks(text, "sh")))
    hold_the_promise(typist)
    read, started, sent = (json.loads(said) for said in typist.saying("curl"))
    equal((read["id"], read["state"]), ("o-1", "charging"))
    equal((started["id"], sent["id"], sent["state"]), ("o-2", "o-2", "cancelled"))
    # The text goes on to say that o-1 is paid: nobody has cancelled it.
    equal(json.loads(typist.run("detent get o-1 --json"))["state"], "charging")
    typist.end()


def test_flow_of_readme_runs():
    flow, = (block for block in blocks((TREE / "README.md").read_text(), "text")
             if "--from flow" in block)
    typist = Typist()
    typist.type_all(flow)
    check("sales completed: 3 rows in, 2 out" in typist.saying("detent new sales")[0],
          str(typist.said))
    equal(len(Path("orders.jsonl").read_text().splitlines()), 2)


def test_every_command_of_readme_and_tutorial_is_run_by_some_test():
    """docs.snippets runs the consoles, this suite the shells; the rest must be known."""
    texts = [(TREE / page).read_text() for page in PAGES]
    makefile = (TREE / "Makefile").read_text()
    for line in "".join(block for text in texts for block in blocks(text, "text")).splitlines():
        command = re.match(r"(detent|make|cd|export|cc|curl|kill|apt)\b.*", line)
        if not command:
            continue
        check(any(line.startswith(known) for known in ELSEWHERE), f"who runs this? {line}")
        if line.startswith("make "):
            target = line.split()[1]
            check(re.search(rf"^{target}:", makefile, flags=re.M), f"there is no make {target}")


def test_make_run_tour_starts_and_sells():
    subprocess.run(["cp", "-R", f"{TREE}/examples/tour", "."], check=True)
    os.chdir("tour")
    typist = Typist()
    typist.start()
    typist.up.wait_for("order .*: charging -> ")
    typist.end()


if __name__ == "__main__":
    sys.exit(up.main(globals()))
