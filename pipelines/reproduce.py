"""Writes the reproduction report over finished runs, wherever they are.

    python -m pipelines.reproduce \\
        --runs='pipeline_runs/quick/work/runs/logs,tensorboard_logs' \\
        --output=report

Every claim with its figure, numbers, interval, rule and verdict. Runs and
threshold tables are searched in the folders that the patterns match.
"""

from __future__ import annotations

import shlex

from absl import flags

from tfcomp.config.errors import ConfigError
from tfcomp.config.errors import exit_on_user_error
from tfcomp.config.run_flags import parse_flags
from tfcomp.config.run_flags import print_help
from tfcomp.config.run_flags import wants_help
from tfcomp.storage.run_search import split_patterns


def main(argv: list[str]) -> int:
    """Judges the claims and writes the report; returns the exit status."""
    values = define_flags()
    if wants_help(argv[1:]):
        print_help(__doc__, values)
        return 0
    settings = parse_flags(argv[1:], values)
    if not settings["output"]:
        raise ConfigError("output", "must name a folder", "")
    # Their libraries for figures are imported after the flags are checked.
    from tfcomp.claims import read_evidence
    from tfcomp.claims import write_report

    evidence = read_evidence(split_patterns(settings["runs"]))
    command = shlex.join(["python", "-m", "pipelines.reproduce", *argv[1:]])
    report = write_report(evidence, settings["output"], command)
    for result in report.results:
        claim = result.claim
        print(f"{claim.name:4} {result.verdict:12} {claim.title}")
    for note in evidence.notes:
        print(f"note {note}")
    print(f"\nreport  {report.page}")
    return 0


def define_flags() -> flags.FlagValues:
    """The flags of the command."""
    values = flags.FlagValues()
    flags.DEFINE_string(
        "runs",
        "",
        "Run folders or folders of them (sweeps): patterns with *, separated "
        "by commas.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "output",
        "report",
        "Folder of report.html, report.md, claims.csv and the figures.",
        flag_values=values,
    )
    return values


if __name__ == "__main__":
    exit_on_user_error(main)
