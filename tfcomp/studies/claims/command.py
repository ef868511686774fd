"""Does the paper hold? Every claim, judged by finished runs.

    tfcomp study claims --runs='tensorboard_logs/*' --output=report

The report shows every claim of the paper with its figure, numbers, interval,
rule and verdict. Runs and tables of threshold searches are found at any depth
below the folders that the patterns match.
"""

from typing import Any

from tfcomp.storage.output_folders import check_folder
from tfcomp.studies import make_main

FLAGS = {
    "runs": (
        "",
        "Run folders, or folders that contain them, such as sweeps: patterns "
        "with *, separated by commas.",
    ),
    "output": (
        "report",
        "The folder for report.html, report.md, claims.csv and the figures.",
    ),
}


def judge_claims(settings: dict[str, Any]) -> int:
    """Judges the claims and writes the report, which shows the command.

    Raises ConfigError if there is no folder to write, or nothing to read.
    """
    check_folder("output", settings["output"])
    # These import libraries for figures, after the flags are checked.
    from tfcomp.studies.claims import read_some_evidence, write_report

    evidence = read_some_evidence(settings["runs"])
    report = write_report(evidence, settings["output"], settings["command"])
    print(f"{'':4} {'as the paper':14} {'stricter test':14}")
    for result in report.results:
        words = f"{result.paper_word or '–':14} {result.word:14}"
        print(f"{result.claim.name:4} {words} {result.claim.title}")
        if len(result.by_part) > 1:
            print(f"{'':19} {result.badge}")
    for note in evidence.notes:
        print(f"note {note}")
    print(f"\nreport  {report.page}")
    return 0


main = make_main("claims", __doc__, FLAGS, judge_claims)
