"""Does the paper hold? Every claim, judged by finished runs.

    python -m reproduction.claims --runs=reproduction/evidence --output=report

writes results.md, a short table with two answers for each claim, and
claims.csv, all numbers. Runs and tables of threshold searches are found at any
depth below the folders that the patterns match.
"""

from collections import Counter
from typing import Any

from reproduction.claims.page import PAGE, write_report
from tfcomp.config.run_flags import Command
from tfcomp.storage.files import check_folder

FLAGS = {
    "runs": (
        "reproduction/evidence",
        "Run folders, or folders that contain them, such as sweeps: patterns "
        "with *, separated by commas.",
    ),
    "output": ("report", "The folder for results.md and claims.csv."),
}


def judge_runs(settings: dict[str, Any]) -> int:
    """Judges all claims and writes the report."""
    check_folder("output", settings["output"])
    # Imported here: bad flags must be answered without pandas.
    from reproduction.claims.evidence import read_some_evidence
    from tfcomp.tables.read import print_left_out

    evidence = read_some_evidence(settings["runs"])
    rows = write_report(evidence, settings["output"])
    print_left_out(evidence.notes)
    answers = Counter(row.holds for row in rows)
    words = ", ".join(f"{n} {answer}" for answer, n in answers.items())
    print(f"holds   {words}")
    print(f"report  {settings['output']}/{PAGE}")
    return 0


main = Command(__doc__, FLAGS, judge_runs)
