"""The reproduction report: self-contained, complete, in agreement."""

import base64
import csv
import html
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

from reproduction.claims import result_text, write_report
from reproduction.claims.command import main
from reproduction.claims.evidence import Evidence
from tests.reproduction.claims.planted import (
    KINDS,
    Planted,
    Run,
    gather,
    make_run,
    make_study,
    plant_claim,
)
from tfcomp.config.errors import ConfigError, RunError

COMMAND = "python -m a.command --runs='logs/*' <and> more"
PACK = Path(__file__).parents[3] / "reproduction/evidence/hard_given.csv.xz"
MAX_BYTES = 3_000_000


def plant_all_claims() -> Evidence:
    """Evidence on all claims at once, of all three kinds."""
    merged: dict[str, Run] = {}
    for number in range(1, 23):
        for run in plant_claim(f"C{number}", KINDS[number % 3]).runs:
            key = repr(sorted(run.flags.items()))
            other = merged.get(key, run)
            splits = {**other.metrics, **run.metrics}
            metrics = {
                split: other.metrics.get(split, {}) | run.metrics.get(split, {})
                for split in splits
            }
            measures = other.measures | run.measures
            merged[key] = Run(run.flags, metrics, measures)
    studies = plant_claim("C16", "undecided").studies
    return Planted(tuple(merged.values()), studies, ("a note",)).gather()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("claims") / "new" / "folder"
    return write_report(plant_all_claims(), folder, COMMAND)


@pytest.fixture(scope="module")
def page(report) -> str:
    return report.page.read_text("utf-8")


def test_page_is_self_contained(report, page: str) -> None:
    assert not re.search("<(link|iframe)|<script[^>]", page)
    links = re.findall('(?:src|href)="([^"]*)"', page)
    (picture,) = (x for x in links if x.startswith("data:image/png;base64,"))
    png = base64.b64decode(picture.partition(",")[2])
    saved = report.page.parent / "figures" / "verdicts.png"
    assert saved.read_bytes() == png and png.startswith(b"\x89PNG")
    assert len(png) < 300_000 and len(page) < MAX_BYTES
    anchors = {x[1:] for x in links if x.startswith("#")}
    ids = re.findall(' id="([^"]*)"', page)
    assert anchors <= set(ids) and len(set(ids)) == len(ids)
    files = {x for x in links if not x.startswith(("#", "data:"))}
    assert all((report.page.parent / name).is_file() for name in files)
    assert "http" not in page.replace("http-equiv", "")


def test_page_shows_every_claim_and_number(report, page: str) -> None:
    assert all(f'id="C{number}"' in page for number in range(1, 23))
    text = html.unescape(re.sub("<[^>]*>", " ", page))
    for result in report.results:
        assert (result.claim.stricter or result.claim.statement) in text
        for part in result.parts:
            assert part.quantity in text
            if part.estimate is not None:
                assert result_text.format_number(part.estimate.mean) in text
        assert result.claim.rule in text
        assert all(control.name in text for control in result.controls)
        assert all(row["rule"] in text for row in result.claim.history)
    assert COMMAND in text  # escaped in the source
    assert "<and>" not in page
    assert "a note" in text


def test_tables_agree_with_the_verdicts(report) -> None:
    folder = report.page.parent
    with open(folder / "claims.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["test"] for row in rows].count("ours") == sum(
        len(r.parts) for r in report.results
    )
    words = {r.claim.name: r.word for r in report.results}
    assert {row["claim"]: row["claim_verdict"] for row in rows} == words
    markdown = (folder / "report.md").read_text("utf-8").splitlines()
    table = [line for line in markdown if line.startswith("| **C")]
    _, _, *lines = (folder / "controls.md").read_text("utf-8").splitlines()
    history = (folder / "history.md").read_text("utf-8")
    for row, line, result in zip(table, lines, report.results, strict=True):
        assert f"**{result.claim.name}**" in row
        assert f"**{result.badge}**" in row
        assert row.replace("\\|", "").count("|") == 6
        cells = line.strip("| ").replace("\\|", "").split(" | ")
        count = [str(c.kind) for c in result.controls].count("positive")
        assert len(cells) == 6 and cells[2] == f"{count} of {count}"
        versions = len(result.claim.history) + 1
        assert history.count(f"| {result.claim.name} |") == versions


def test_report_without_evidence(tmp_path: Path) -> None:
    report = write_report(Evidence(), tmp_path)
    for result in report.results:
        assert result.parts
        assert {result.verdict, *(p.verdict for p in result.parts)} == {
            "not run"
        }
    assert "22 not run" in report.page.read_text("utf-8")
    _, _, *lines = (tmp_path / "verdicts.md").read_text().splitlines()
    assert all("| **not run**" in line for line in lines) and len(lines) == 22
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="--output must be writable"):
        write_report(Evidence(), tmp_path / "file" / "report")


@pytest.mark.skipif(not PACK.exists(), reason="no evidence is committed")
def test_command_without_tensorflow(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "sys.modules |= dict.fromkeys(['tensorflow', 'keras'])\n"
        "from reproduction.claims.command import main\n"
        "sys.exit(main(sys.argv))\n"
    )
    flags = [f"--runs={PACK}", f"--output={tmp_path}"]
    done = subprocess.run(
        [sys.executable, "-c", script, *flags], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\nC") == 22
    assert f"{tmp_path}/report.html" in done.stdout
    assert (tmp_path / "report.md").exists()
    assert (tmp_path / "claims.csv").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--runs=nix*"], "--runs must match a folder, got 'nix"),
        (["--runs=.", "--output="], "--output must name a folder, got ''"),
        (["--runs=/etc/passwd"], "must match finished runs or"),
    ],
)
@pytest.mark.usefixtures("working_folder")
def test_mistakes(flags: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        main(["", *flags])
    assert not Path("report").exists()


ERRORS = (0.1, 0.2, 0.8)


def read_rows(table: str) -> list[list[str]]:
    """The cells of a table, its heading left out."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()[2:]
    ]


def plant(*flags: str, fits: tuple[float, ...] = (0.01,) * 3) -> list[Run]:
    """Three seeds of a setting, with errors and positions in place."""
    return [
        make_run(
            "donut.flags",
            100 + seed,
            *flags,
            relative=error,
            fit=fit,
            layers={"ood/position_accuracy": error / 2},
        )
        for seed, (error, fit) in enumerate(zip(ERRORS, fits, strict=True))
    ]


def format_runs(runs: list[Run]) -> list[list[str]]:
    return read_rows(result_text.format_sweep(gather(runs).groups))


def test_numbers_of_a_setting() -> None:
    [row] = format_runs(plant())
    mean = math.prod(ERRORS) ** (1 / 3)
    assert row == [
        "all",
        "3 of 3",
        "0.01 (all)",
        f"{mean:.3g} (0.1 to 0.8)",
        f"{mean / 250:.3g} (4.0e-04 to 0.0032)",
        f"{100 * sum(ERRORS) / 6:.3g} (5 to 40)",
    ]


def test_only_fitted_seeds_count_unless_none_is() -> None:
    [row] = format_runs(plant(fits=(0.01, 0.2, 0.01)))
    assert row[1] == "2 of 3"
    assert row[3] == f"{math.sqrt(0.1 * 0.8):.3g} (0.1 to 0.8)"
    [row] = format_runs(plant(fits=(0.1, 0.2, 0.1)))
    assert row[1] == "0 of 3" and row[3].endswith("(0.1 to 0.8)")
    # Stripes are fitted when their peaks are in place.
    flags = "--dataset=stripes", "--polarity=bright"
    [row] = format_runs(plant(*flags, fits=(9, 9, 9)))
    assert row[1] == "3 of 3"


def test_settings_are_rows_in_the_order_of_their_values() -> None:
    runs = [*plant("--depth=10"), *plant("--depth=2")]
    assert [row[0] for row in format_runs(runs)] == ["2", "10"]
    evidence = gather(runs)
    tables = result_text.make_score_tables(evidence)
    assert tables == {"planted": result_text.format_sweep(evidence.groups)}


def test_numbers_of_a_study() -> None:
    study = make_study("study")
    table = result_text.format_study(study)
    head = table.splitlines()[0]
    assert "| N = 16 | N = 20 | N = 24 | N = 32 | slope |" in head
    bumps, stripes = read_rows(table)
    assert bumps[0] == "bumps" and stripes[0] == "stripes and bumps"
    assert bumps[2] == stripes[2] == "position accuracy"
    # The planted law of bumps is cubic, that of stripes linear.
    means = [float(cell.split()[0]) for cell in bumps[3:-1]]
    assert means[3] / means[0] == pytest.approx(8, rel=0.02)
    assert bumps[-1].startswith("3 [") and stripes[-1].startswith("1 [")
    # Failed searches are counted and left out.
    found = study.thresholds
    is_last = (found["kind"] == "bumps") & (found["grid_size"] == 32)
    for lost, end in ((1, ", 1 not reached"), (3, "–, 3 not reached")):
        found.loc[found.index[is_last][:lost], "reached"] = False
        assert read_rows(result_text.format_study(study))[0][6].endswith(end)
