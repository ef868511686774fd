"""Embeddings and encoders of a user: tables, order of rows, mistakes, pages."""

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose, assert_array_equal
from pytest import approx

import tfcomp
from tests.models.small_images import INDEX, REGION, TABLE, make_images
from tfcomp.report.report_build import MAKERS

pytestmark = pytest.mark.usefixtures("untraced")

RNG = np.random.default_rng(0)
PARTS = [RNG.normal(size=(size, 16)) for size in (3, 8, 8)]
SUM = sum(p[column] for p, column in zip(PARTS, INDEX.T, strict=True))
NOISY = SUM + 0.1 * RNG.normal(size=SUM.shape)
FRAME = pd.DataFrame(
    {
        "shape": np.array(["square", "plus", "bar"])[INDEX[:, 0]],
        "x": INDEX[:, 1] * 2.5,
        "y": INDEX[:, 2],
    }
)


@pytest.fixture(scope="module")
def embedded() -> tfcomp.ModelReport:
    """Rows in random order; those of x=3 and y=3 are missing."""
    order = np.random.default_rng(1).permutation(len(INDEX))
    order = order[(INDEX[order, 1:] != 3).any(axis=1)]
    layers = {
        "early": RNG.normal(size=SUM.shape)[order],
        "late": NOISY[order],
    }
    return tfcomp.evaluate_embeddings(
        layers,
        FRAME.iloc[order],
        "shape:bar,x:10-17.5",
        name="peer",
    )


def test_scores_of_layers(embedded) -> None:
    table = embedded.tables["layers"].set_index(["layer", "classes"])
    late = table.loc[("late", "given")]
    early = table.loc[("early", "given")]

    assert late["additive_r2"] > 0.99 > 0.2 > early["additive_r2"]

    chance = table.loc[("late", "permuted"), "additive_r2"]
    assert chance == approx(early["additive_r2"], abs=0.03)
    assert late["composed_ood"] < 0.02 < late["nearest_ood"] < 2
    assert late["accuracy_ood"] == 1
    assert late["alignment_factorized"] > early["alignment_factorized"]

    # The scores of the composition are of the last layer.
    error = embedded.scores["ood"]["relative_mse"]
    assert error == approx(late["composed_ood"], rel=1e-3)
    assert embedded.stages == ["early", "late", "image"]

    probes = embedded.analysis.layers.summary
    assert probes["late"]["probe_r2_id"] > 0.5 > probes["early"]["probe_r2_id"]


def test_rows_are_those_of_the_table(embedded) -> None:
    values = embedded.activations(
        "late",
        shape="plus",
        x=5,
        y=[0, 4],
    )
    rows = [(INDEX == [1, 2, y]).all(axis=1).argmax() for y in (0, 4)]

    assert_allclose(values, NOISY[rows], rtol=1e-6)

    frame = embedded.to_frame()
    assert set(frame["shape"]) == {"square", "plus", "bar"}

    held_out = frame[frame["is_ood"]]
    assert set(held_out["shape"]) == {"bar"}
    assert held_out["x"].min() == 10


def test_a_page_of_embeddings(embedded, tmp_path) -> None:
    sections = ["explorer", "representations", "superposition"]
    path = embedded.write_report(tmp_path / "report", sections)
    page = path.read_text("utf-8")

    assert "peer: a sum of parts explains" in page
    assert "Sums of parts, layer by layer" in page
    assert 'href="#section-superposition"' not in page  # which is of images
    assert 'href="#section-representations"' in page
    assert '"items":[' in page
    assert (tmp_path / "report/table_layers.csv").exists()


def test_pictures_and_tables_of_factors_alone() -> None:
    result = tfcomp.evaluate_embeddings(NOISY, TABLE, REGION)
    rows = [0, 77, 150]
    truth = result.analysis.evaluation.truth[rows]
    pictures = result.dataset.to_pictures(truth)[..., 0]  # of the nearest items

    assert_array_equal(pictures, make_images()[rows])

    table = tfcomp.FactorTable(None, INDEX, names=["shape", "x", "y"])

    assert "192 rows" in repr(table)
    with pytest.raises(ValueError, match="images must be given"):
        table.draw(table.points)

    result = tfcomp.evaluate_embeddings(SUM, table, "x:2,y:3-5")
    assert result.scores["ood"]["relative_mse"] < 1e-9

    shades = result.dataset.to_pictures(truth)
    assert shades.shape == (3, 4, 4, 1)
    assert 0 <= shades.min() < shades.max() <= 1


def test_several_rows_of_a_combination(rng) -> None:
    """Scores are over all rows; the composition is of their means."""
    rows = np.repeat(np.arange(192), 1 + np.arange(192) % 3)
    rows = rng.permutation(rows)
    values = SUM[rows] + 0.5 * rng.normal(size=(len(rows), 16))

    report = tfcomp.evaluate_embeddings(
        values,
        FRAME.iloc[rows],
        "shape:bar,x:10-17.5",
    )

    _, x, y = INDEX[77]
    (means,) = report.activations(
        "embeddings",
        shape="plus",
        x=2.5 * x,
        y=y,
    )
    assert_allclose(means, values[rows == 77].mean(axis=0), atol=1e-5)
    noise = 0.25 * 16 / values.var(axis=0).sum()
    r2 = report.tables["layers"]["additive_r2"][0]
    assert 1 - r2 == approx(noise, rel=0.1)


@pytest.mark.parametrize(
    ("embeddings", "word"),
    [
        (SUM[:5], "rows"),
        (np.where(SUM > 2, np.nan, SUM), "finite"),
        (SUM.astype(str), "numbers"),
        ({"image": SUM}, "image"),
    ],
)
def test_mistakes_are_one_line(embeddings, word) -> None:
    with pytest.raises(ValueError, match=word) as caught:
        tfcomp.evaluate_embeddings(embeddings, FRAME)
    assert "\n" not in str(caught.value)


def make_encoder() -> keras.Model:
    images = keras.Input((12, 12, 1))
    conv = keras.layers.Conv2D(
        4,
        3,
        activation="relu",
        name="conv",
    )(images)
    flat = keras.layers.Flatten()(conv)
    return keras.Model(images, keras.layers.Dense(6, name="code")(flat))


def test_layers_of_an_encoder() -> None:
    encoder = make_encoder()
    report = tfcomp.evaluate_encoder(encoder, TABLE, REGION, codes=False)

    assert report.stages == ["conv", "latents", "image"]
    expected = encoder.predict(TABLE.draw(TABLE.points), verbose=0)
    assert_allclose(report.activations("latents"), expected, atol=1e-5)


def test_named_layers_of_a_function() -> None:
    def encode(images: np.ndarray) -> dict[str, np.ndarray]:
        return {"pixels": images, "mean": images.mean(axis=(1, 2))}

    report = tfcomp.evaluate_encoder(
        encode,
        TABLE,
        REGION,
        layers=["pixels"],
        codes=False,
    )

    assert report.stages == ["pixels", "latents", "image"]


def test_an_encoder_sees_all_images_of_a_combination() -> None:
    """Means of an image and its negative would be gray."""
    images = np.concatenate([make_images(), 1 - make_images()])
    rows = np.tile(INDEX, (2, 1))
    table = tfcomp.FactorTable(images, rows, names=TABLE.space.names)
    region = "x:2,y:3-5"

    def encode(images: np.ndarray) -> np.ndarray:
        return images.reshape(len(images), -1)[:, ::9] ** 2

    encoded = tfcomp.evaluate_encoder(encode, table, region, codes=False)
    given = tfcomp.evaluate_embeddings(encode(images), table, region)

    scores = ["additive_r2", "composed_id", "composed_ood", "nearest_ood"]
    pd.testing.assert_frame_equal(
        encoded.tables["layers"][scores][:1],
        given.tables["layers"][scores][:1],
    )
    assert_allclose(
        encoded.activations("latents"),
        given.activations("embeddings"),
        rtol=1e-6,
    )
    with pytest.raises(ValueError, match="one image"):
        tfcomp.evaluate_encoder(encode, table, decoder=encode)


def test_an_autoencoder_in_one_report() -> None:
    """A decoder that renders images from latents that are the factors."""
    rows = (INDEX[:, 1:] < 4).all(axis=1)
    index = INDEX[rows]
    images = make_images()[rows]
    table = tfcomp.FactorTable(images, index, names=TABLE.space.names)
    latents = {
        image.tobytes(): row for image, row in zip(images, index, strict=True)
    }

    def encode(images: np.ndarray) -> np.ndarray:
        return np.float32([latents[i.tobytes()] for i in images[..., 0]])

    report = tfcomp.evaluate_encoder(
        encode,
        table,
        "x:2-3,y:2-3",
        decoder=table.draw,
    )

    assert report.stages == ["latents", "image"]
    assert report.scores["ood"]["mse"] == approx(0, abs=1e-9)
    codes = report.tables["codes"].set_index("score")["value"]
    assert (codes[["dci_disentanglement", "factor_vae"]] > 0.9).all()
    section = MAKERS["representations"]([report.analysis])
    assert "table_codes" in {exhibit.name for exhibit in section.exhibits}


def test_interactions_of_rows_in_any_order(rng, capsys) -> None:
    """A product of two factors; what is taken is said before."""
    product = PARTS[1][INDEX[:, 1]] * PARTS[2][INDEX[:, 2]]
    order = rng.permutation(len(INDEX))
    values = (SUM + product)[order]
    frame = FRAME.iloc[order]

    report = tfcomp.evaluate_embeddings(tf.constant(values, "float32"), frame)
    lacking = tfcomp.evaluate_embeddings(values[1:], frame.iloc[1:])

    assert "192 embeddings of embeddings (16)" in capsys.readouterr().err
    grid = product.reshape(3, 8, 8, 16)[0]
    rows = grid.mean(axis=0)
    columns = grid.mean(axis=1)[:, None]
    pairs = grid - rows - columns + grid.mean(axis=(0, 1))
    total = 192 * values.var(axis=0).sum()
    share = report.run.tables["layers"][0]["pair_share"]
    assert share == approx(3 * np.square(pairs).sum() / total, rel=1e-4)
    assert lacking.run.tables["layers"][0]["pair_share"] is None


@pytest.mark.parametrize(
    ("encoder", "layers", "word"),
    [
        (lambda images: (images, images), (), "outputs"),
        (lambda images: images[:1], (), "row"),
        (make_encoder(), ("convv",), "convv"),
    ],
    ids=["two outputs", "one row", "no such layer"],
)
def test_encoders_of_other_forms(encoder, layers, word) -> None:
    with pytest.raises(ValueError, match=word):
        tfcomp.evaluate_encoder(encoder, TABLE, REGION, layers=layers)
