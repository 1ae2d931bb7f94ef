#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""The pictures of machines in docs/images are what `detent diagram` draws of their definitions.

    diagram.py DETENT ROOT          compares the texts and the shapes; places depend on GraphViz
    diagram.py --write DETENT ROOT  writes the pictures
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Where the definition is: in a block of README.md, or a file.
PICTURES = {
    "docs/images/order.svg": "README.md",
    "docs/images/daemon-life.svg": "src/program/daemon/life.fsm",
    "docs/images/daemon-reload.svg": "src/program/daemon/reload.fsm",
}


def machine_of(readme):
    found = re.search(r"^<!-- file: order.fsm -->\n```fsm\n(.*?)^```$", readme, flags=re.M | re.S)
    if not found:
        sys.exit("README.md has no order.fsm")
    return found[1]


def draw(detent, source):
    text = source.read_text()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "spec.fsm")
        path.write_text(machine_of(text) if source.suffix == ".md" else text)
        return subprocess.check_output([detent, "diagram", path, "--format", "svg"], text=True)


def structure(svg):
    """Every text, and how many there are of each shape."""
    texts = sorted(re.findall(r"<text [^>]*>([^<]*)</text>", svg))
    shapes = {name: len(re.findall(rf"<{name} ", svg)) for name in ("path", "ellipse", "polygon")}
    return texts, shapes


def check(root, picture, svg):
    committed, drawn = structure(Path(root, picture).read_text()), structure(svg)
    if len(drawn[0]) < 7:
        sys.exit(f"{picture}: that is no drawing of a machine: {drawn}")
    if committed != drawn:
        sys.exit(f"{picture} has {committed}, detent draws {drawn}: run scripts/pictures")
    pages = [page for page in (Path(root, "README.md"), Path(root, "ARCHITECTURE.md"))
             if f"]({picture})" in page.read_text()]
    if not pages:
        sys.exit(f"{picture} is on no page")


def main():
    arguments = sys.argv[1:]
    is_write = arguments[:1] == ["--write"]
    detent, root = arguments[is_write:]
    for picture, source in PICTURES.items():
        svg = draw(Path(detent).resolve(), Path(root, source))
        if is_write:
            Path(root, picture).write_text(svg)
        else:
            check(root, picture, svg)
    return 0


if __name__ == "__main__":
    sys.exit(main())
