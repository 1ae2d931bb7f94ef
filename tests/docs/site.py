#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""The documentation builds as a site, with search, and a dead link or a forgotten page is an error.

    site.py ROOT WORK    exit code 77 where mkdocs is not installed
"""
import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT, WORK = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()


def add_dead_link(pages):
    with open(pages / "README.md", "a", encoding="utf-8") as file:
        file.write("[nowhere](docs/none.md)\n")


def add_unlisted_page(pages):
    (pages / "unlisted.md").write_text("# Unlisted\n")


def build():
    return subprocess.run(
        [ROOT / "scripts/site", "--work", WORK], capture_output=True, text=True, check=False)


def rebuild(fault):
    """What mkdocs says of the same pages with a fault."""
    pages = WORK / "pages"
    copy = WORK / "sound"
    shutil.copytree(pages, copy)
    fault(pages)
    done = subprocess.run([ROOT / "scripts/site", "--work", WORK, "--keep-pages"],
                          capture_output=True, text=True, check=False)
    shutil.rmtree(pages)
    copy.rename(pages)
    return done


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    done = build()
    print(done.stdout + done.stderr)
    if done.returncode:
        return done.returncode
    index = json.loads((WORK / "site/search/search_index.json").read_text())
    titles = {entry["title"] for entry in index["docs"]}
    for wanted in ("Machines", "Glossary", "Performance"):
        assert wanted in titles, wanted
    assert "docs/images/console.png" in (WORK / "site/index.html").read_text()
    for fault in (add_dead_link, add_unlisted_page):
        assert rebuild(fault).returncode not in (0, 77), f"{fault.__name__}: mkdocs found nothing"
    return 0


if __name__ == "__main__":
    sys.exit(main())
