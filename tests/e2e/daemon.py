#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs what makes a daemon of `detent`, end to end: tokens, folders without a file, `serve`.

    daemon.py DETENT NASTY_CHILD [PART_OF_A_NAME]

The frame is that of up.py.
"""
import hashlib
import json
import os
import re
import signal
import sys
from pathlib import Path

import up
from machines import ORDER, PARCEL, detent, objects, one, run
from up import Up, check, equal, wait_until

TASK = "version: 1\ntasks:\n  a: {run: sleep 60}\n"
TOKEN = re.compile(r"det_([a-km-np-z2-9]{8})_([A-Za-z0-9_-]{43})\n")


def project(text=TASK):
    Path("detent.yaml").write_text(text)


def test_a_token_is_printed_once_and_kept_as_a_hash():
    project()
    done = detent("token", "new", "--name", "ci", "--scope", "read,metrics", "--expires", "30d",
                  err="read,metrics; expires")
    found = TOKEN.fullmatch(done.stdout)
    check(found, done.stdout)
    text = Path(".detent/tokens").read_text()
    check(found[2] not in text and hashlib.sha256(found[2].encode()).hexdigest() in text, text)
    equal(os.stat(".detent/tokens").st_mode & 0o777, 0o600)
    token = one("token", "list")
    equal((token["id"], token["name"], token["scopes"]), (found[1], "ci", ["read", "metrics"]))
    detent("token", "list", out=[found[1], "read,metrics"])
    made = one("token", "new", "--expires", "never")
    equal((made["expires"], made["scopes"]), (None, ["read", "send"]))
    check(TOKEN.fullmatch(made["token"] + "\n"), made)
    equal(one("token", "revoke", found[1])["type"], "revoked")
    equal([token["id"] for token in objects("token", "list")], [made["id"]])
    detent("token", "revoke", made["id"], out="is revoked")
    detent("token", "list", err="There are no tokens")


def test_what_is_wrong_with_tokens_is_told():
    detent("token", "list", code=3, err="there is no detent.yaml here")
    project()
    detent("token", "nwe", code=2, err="did you mean 'new'?")
    detent("token", "new", "x", code=2, err="takes no name")
    detent("token", "revoke", code=2, err="needs the id")
    detent("token", "revoke", "nobody", code=3, err="there is no token 'nobody'")
    detent("token", "new", "--scope", "write", code=2, err="read, send, admin and metrics")
    detent("token", "new", "--name", "a b", code=2, err="letters, digits")
    detent("token", "new", "--expires", "soon", code=2, err="expires")
    detent("token", "new")
    os.chmod(".detent/tokens", 0o640)
    detent("token", "list", code=6, err="chmod 600")
    os.chmod(".detent/tokens", 0o600)
    Path(".detent/tokens").write_text("{}\n")
    detent("token", "list", code=1, err="line 1 is damaged")


if __name__ == "__main__":
    sys.exit(up.main(globals()))
