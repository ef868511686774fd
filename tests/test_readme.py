"""Examples of README and docs run; what they name exists."""

import importlib.util
import re
from pathlib import Path

import keras
import numpy as np
import PIL.Image
import pytest

from reproduction import FLAGFILES
from tfcomp import analyze, train
from tfcomp.config.run_flags import list_flagfiles, parse_config
from tfcomp.datasets import make_dataset

pytestmark = pytest.mark.usefixtures("untraced", "no_pdf")

ROOT = Path(__file__).parents[1]
README = "README.md"
EXTENDING = "docs/models.md"
EXPERIMENTS = "docs/experiments.md"
ROOT_PAGES = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
FOLDERS = (
    "docs",
    "docs/tutorials",
    "reproduction/evidence",
    "reproduction/decoders/evidence",
)
PAGES = [README] + [
    str(path.relative_to(ROOT))
    for folder in FOLDERS
    for path in sorted((ROOT / folder).glob("*.md"))
]


def read_page(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def find_block(page: str, marker: str) -> str:
    """The code block after an HTML comment."""
    pattern = rf"<!-- {marker} -->\n```[^\n]*\n(.*?)```"
    return re.search(pattern, read_page(page), re.DOTALL)[1]


def find_command(plugin: str) -> list[str]:
    """The flags of the page's training with a plugin."""
    pattern = rf"tfcomp train (.*=my_{plugin} .*)"
    return re.search(pattern, read_page(EXTENDING))[1].split()


def test_analysis_of_another_model(capsys: pytest.CaptureFixture):
    exec(find_block(EXTENDING, "runnable"), {})

    words = capsys.readouterr().out.split()
    assert words[::2] == ["hidden", "pixels"]
    for score in words[1::2]:
        assert 0.5 <= float(score) <= 1


def test_own_factors_renderer_region_and_model(
    working_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.syspath_prepend(working_folder)
    Path("my_rings.py").write_text(find_block(EXTENDING, "own factors"))
    quick = "--epochs=1 --steps_per_epoch=1 --layerwise_every=0 --eval_every=0 "
    quick += "--pictures=false --export=false"
    run = "tensorboard_logs/rings"

    flags = [*find_command("rings"), *quick.split()]
    assert train.main(["train", *flags]) == 0
    assert analyze.main(["analyze", f"--run={run}", "--sections=errors"]) == 0

    assert Path(run, "analysis/landscape_rings.png").exists()


def test_layers_in_a_model_of_ones_own(
    working_folder: Path,
    capsys: pytest.CaptureFixture,
):
    exec(compile(find_block(EXTENDING, "own layers"), EXTENDING, "exec"), {})
    assert capsys.readouterr().out == "(1, 28, 28, 1)\n"
    keras.models.load_model("my_model.keras", compile=False)


def test_own_files_of_images(working_folder: Path):
    Path("my_sheets.py").write_text(find_block(EXTENDING, "own files"))
    sheet = np.arange(5 * 8 * 6 * 8, dtype=np.uint8).reshape(40, 48)
    PIL.Image.fromarray(sheet).save("shapes.sheet", "png")

    dataset = make_dataset(parse_config(find_command("sheets")))

    assert dataset.space.shape == (5, 6)
    assert dataset.splits.is_ood.sum() == 4
    image = dataset.render(np.array([[2, 1]]))[0, ..., 0]
    np.testing.assert_allclose(image, sheet[16:24, 8:16] / 255)


def test_every_flagfile_is_listed():
    """Experiments in one table, those of other commands in their page."""
    pages = "".join(map(read_page, PAGES))
    of_campaign = [path.name for path in FLAGFILES.glob("*.flags")]
    for name in [*list_flagfiles(), *of_campaign]:
        if name.startswith(("sweep", "threshold")):
            assert f"{name}`" in pages or f"={name} " in pages, name
        else:
            assert f"`{name.removesuffix('.flags')}`" in read_page(EXPERIMENTS)


@pytest.mark.parametrize("page", [*PAGES, *ROOT_PAGES])
def test_links_of_a_page_lead_somewhere(page: str):
    prose = re.sub(r"^```.*?^```", "", read_page(page), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if link.startswith("https://"):
            continue
        name, _, heading = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        assert target.exists(), link
        if heading:
            assert heading in list_anchors(target.read_text("utf-8")), link


def list_anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", title.lower()) for title in headings)
    return {title.replace(" ", "-") for title in plain}


@pytest.mark.parametrize("page", [*PAGES, "ARCHITECTURE.md"])
def test_modules_and_files_that_a_page_names_exist(page: str):
    text = read_page(page)
    modules = r"python -m ((?:tfcomp|pipelines|reproduction)[\w.]*)"
    for name in re.findall(modules, text):
        assert importlib.util.find_spec(name), name
    packages = "tfcomp|pipelines|reproduction|tests"
    named = rf"(?<![\w/])((?:{packages})/[\w/]+(?:(?:\.\w+)+|/))"
    for name in re.findall(named, text):
        assert (ROOT / name).exists(), name
