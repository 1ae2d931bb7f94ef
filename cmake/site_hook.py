# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""site_hook.py - what scripts/site adds to mkdocs: anchors, more pages, a check of the order."""
import logging
import re
from pathlib import Path

log = logging.getLogger("mkdocs.hooks.detent")


def slugify(heading, separator):
    """Anchors as tests/docs/snippets.py checks them: one separator for each blank."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def add(nav, section, root, pattern):
    """Adds the pages that match to a section."""
    pages = next(entry[section] for entry in nav if section in entry)
    for page in sorted(root.glob(pattern)):
        name = page.parent.relative_to(root) if page.name == "README.md" else page.stem
        pages.append({str(name): str(page.relative_to(root))})


def on_config(config):
    root = Path(config["docs_dir"])
    add(config["nav"], "Reference", root, "docs/reference/*.md")
    add(config["nav"], "Internals", root, "src/**/README.md")
    config["mdx_configs"]["toc"] = {"slugify": slugify, "permalink": True}
    return config


def on_nav(nav, files, **_):
    """A page that mkdocs.yml does not list is an error with --strict."""
    listed = {page.file.src_path for page in nav.pages}
    for file in files.documentation_pages():
        path = file.src_path
        if path not in listed and not path.startswith("include/"):
            log.warning("%s is not in mkdocs.yml", path)


def on_page_markdown(markdown, **_):
    """Shows the name of a file above its text. A list may follow its paragraph without a blank."""
    markdown = re.sub(r"^<!-- file: (.*) -->$", r"*\1*\n", markdown, flags=re.M)
    return re.sub(r"^((?![-*#|>\s`]|\d+\. ).*)\n(?=- )", r"\1\n\n", markdown, flags=re.M)
