#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""docs/images/order.svg is what `detent diagram` draws of the machine in README.md.

    diagram.py DETENT ROOT          compares the texts and the shapes; places depend on GraphViz
    diagram.py --write DETENT ROOT  writes the picture
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PICTURE = "docs/images/order.svg"


def machine_of(readme):
    found = re.search(r"^<!-- file: order.fsm -->\n```fsm\n(.*?)^```$", readme, flags=re.M | re.S)
    if not found:
        sys.exit("README.md has no order.fsm")
    return found[1]


def draw(detent, spec):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "order.fsm")
        path.write_text(spec)
        return subprocess.check_output([detent, "diagram", path, "--format", "svg"], text=True)


def structure(svg):
    """Every text, and how many there are of each shape."""
    texts = sorted(re.findall(r"<text [^>]*>([^<]*)</text>", svg))
    shapes = {name: len(re.findall(rf"<{name} ", svg)) for name in ("path", "ellipse", "polygon")}
    return texts, shapes


def main():
    arguments = sys.argv[1:]
    is_write = arguments[:1] == ["--write"]
    detent, root = arguments[is_write:]
    svg = draw(Path(detent).resolve(), machine_of(Path(root, "README.md").read_text()))
    picture = Path(root, PICTURE)
    if is_write:
        picture.write_text(svg)
        return 0
    committed, drawn = structure(picture.read_text()), structure(svg)
    if len(drawn[0]) < 8:
        sys.exit(f"that is no drawing of an order: {drawn}")
    if committed != drawn:
        sys.exit(f"{PICTURE} has {committed}, detent draws {drawn}: run scripts/pictures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
