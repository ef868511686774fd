"""Writes the pages of the site: run it before `mkdocs build`.

    python docs/site_pages.py && mkdocs serve

The change log, the guide for contributors and the rules of trust stand in the
root of the repository, where readers look for them; the site has them as pages.
The flags of every command come from its `--help`.
"""

import importlib
import io
import re
import shutil
from contextlib import redirect_stdout
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "pages"
ROOT_PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "saved_models/published/README.md": "published.md",
}
# Histories and plans beside the evidence, and their folders in the site.
EVIDENCE = {
    "reproduction/evidence": "evidence",
    "reproduction/decoders/evidence": "decoder_evidence",
}


def main() -> None:
    """Writes all pages to `build/pages`, from which the site is built."""
    if PAGES.exists():
        shutil.rmtree(PAGES)
    unseen = shutil.ignore_patterns("*.py", "__pycache__", "package_*")
    shutil.copytree(ROOT / "docs", PAGES, ignore=unseen)
    for name, page in ROOT_PAGES.items():
        text = (ROOT / name).read_text("utf-8")
        text = re.sub(r"\]\((?:\.\./)*docs/", "](", text)
        (PAGES / page).write_text(text, "utf-8")
    for folder, place in EVIDENCE.items():
        (PAGES / place).mkdir()
        for path in (ROOT / folder).glob("*.md"):
            text = path.read_text("utf-8")
            text = re.sub(r"\]\((?:\.\./)*docs/", "](../", text)
            (PAGES / place / path.name).write_text(text, "utf-8")
    commands = describe_commands()
    (PAGES / "commands.md").write_text(commands, "utf-8")
    for page in PAGES.rglob("*.md"):
        page.write_text(lead_to_pages(page.read_text("utf-8")), "utf-8")


def lead_to_pages(markdown: str) -> str:
    """Leads links to files outside of `docs` to their pages."""
    for name, page in ROOT_PAGES.items():
        markdown = re.sub(rf"\]\((?:\.\./)?{name}", f"]({page}", markdown)
    for folder, place in EVIDENCE.items():
        link = rf"\]\((?:\.\./)?{folder}/"
        markdown = re.sub(link, f"]({place}/", markdown)
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


if __name__ == "__main__":
    main()
