"""Builds the Markdown files of the repository as a static site: make docs."""

import re
from pathlib import Path

project = "replayd"
author = "The replayd authors"
copyright = "The replayd authors, Apache License 2.0"

extensions = ["myst_parser"]
root_doc = "docs/site/index"
include_patterns = [
    "*.md",
    "bench/README.md",
    "bench/results/*.md",
    "bench/results/**/*.md",
    "deploy/**/README.md",
    "deploy/README.md",
    "docs/*.md",
    "docs/**/*.md",
    "mixin/README.md",
]

# Anchors as GitHub makes them. A link that leads to no page or heading ends the build: make docs runs with -W.
myst_heading_anchors = 4

# Text without a language is not highlighted, nor is an example that is shortened with an ellipsis.
highlight_language = "text"
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = "replayd"
html_show_sphinx = False
html_copy_source = False


def folders(app, page, content):
    """Turns a link to a folder, which GitHub lists, into one to its README, or into its text."""

    def link(found):
        text, target = found.groups()
        path = Path(app.srcdir, page).parent / target
        if not path.is_dir():
            return found.group()
        if (path / "README.md").is_file():
            return f"[{text}]({target.rstrip('/')}/README.md)"
        return text

    content[0] = re.sub(r"\[([^]]*)\]\(([^)#:\s]+)\)", link, content[0])


def setup(app):
    app.connect("source-read", folders)
