"""What MkDocs adds to the pages of this folder.

The change log and the guide for contributors stand in the root of the
repository, where readers look for them; the site has them as pages. The flags
of every command are those that its `--help` prints.
"""

import importlib
import io
import re
from contextlib import redirect_stdout
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
ROOT_PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are no files of this folder."""
    pages = {
        page: (ROOT / name).read_text("utf-8").replace("](docs/", "](")
        for name, page in ROOT_PAGES.items()
    }
    pages["reference/commands.md"] = describe_commands()
    for page, text in pages.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Leads links to files in the root of the repository to their pages."""
    for name, page in ROOT_PAGES.items():
        markdown = re.sub(rf"\]\((?:\.\./)?{name}", f"]({page}", markdown)
    return markdown


def describe_commands() -> str:
    """The purpose and the flags of every command, in Markdown."""
    from tfcomp.__main__ import COMMANDS

    lines = [
        "# Commands and flags\n",
        "Flags of every command: `--help`, and `--flagfile=FILE`, which reads "
        "flags from a file. A word without dashes is a flagfile (`tfcomp "
        "train donut --depth=2`), or a run (`tfcomp analyze logs/donut`).",
    ]
    for name in COMMANDS:
        command = importlib.import_module(f"tfcomp.{name}")
        with redirect_stdout(io.StringIO()) as text:
            command.main([name, "--help"])
        purpose, *groups = re.split(
            r"\n\n(?=[^\n]+:\n  --)", text.getvalue().rstrip()
        )
        lines += [f"\n## {name}\n", purpose.strip()]
        for group in groups:
            title, _, flags = group.partition(":\n")
            lines += [f"\n{title}:\n", "| flag | default | |", "|---|---|---|"]
            found = re.findall(r"^  (--\w+)=(.*)\n +(.*)$", flags, re.M)
            lines += [
                f"| `{flag}` | {default and f'`{default}`'} | {_escape(text)} |"
                for flag, default, text in found
                if flag != "--flagfile"
            ]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
