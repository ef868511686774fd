"""Embeddings and encoders of a user: tables, order of rows, mistakes, pages."""

from collections import OrderedDict, namedtuple

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

pytestmark = pytest.mark.usefixtures("untraced", "few_permutations")

RNG = np.random.default_rng(0)
PARTS = [RNG.normal(size=(size, 16)) for size in (3, 8, 8)]
SUM = sum(p[column] for p, column in zip(PARTS, INDEX.T, strict=True))
NOISY = SUM + 0.1 * RNG.normal(size=SUM.shape)
IMAGES = TABLE.draw(TABLE.points)
FRAME = pd.DataFrame(
    {
        "shape": np.repeat(["square", "plus", "bar"], 64),
        "x": INDEX[:, 1] * 2.5,
        "y": INDEX[:, 2],
    }
)


def project(images: np.ndarray) -> np.ndarray:
    """Takes every ninth pixel."""
    pixels = images.reshape(len(images), -1)
    return pixels[:, ::9]


def get_additive_r2(report: tfcomp.ModelReport) -> float:
    """The score of the only layer."""
    return report.tables["layers"]["additive_r2"][0]


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


def test_scores_of_layers(embedded):
    table = embedded.tables["layers"].set_index(["layer", "classes"])
    late = table.loc[("late", "given")]
    early = table.loc[("early", "given")]

    assert late["additive_r2"] > 0.99
    assert early["additive_r2"] < 0.2
    assert late["composed_ood"] < 0.02
    assert 0.02 < late["nearest_ood"] < 2
    assert late["accuracy_ood"] == 1
    assert late["alignment_factorized"] > early["alignment_factorized"]
    chance = table.loc[("late", "permuted")]
    expected = early["additive_r2"]
    assert chance["additive_r2"] == approx(expected, abs=0.03)

    # The scores of the composition are of the last layer.
    error = embedded.scores["ood"]["relative_mse"]
    assert error == approx(late["composed_ood"], rel=1e-3)
    assert embedded.stages == ["early", "late", "image"]

    probes = embedded.analysis.layers.summary
    assert probes["late"]["probe_r2_id"] > 0.5
    assert probes["early"]["probe_r2_id"] < 0.5


def test_rows_are_those_of_the_table(embedded):
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


@pytest.mark.usefixtures("no_layout")
def test_a_page_of_embeddings(embedded, tmp_path, monkeypatch):
    save = "tfcomp.figures.exhibits._save_figure"
    monkeypatch.setattr(save, lambda *args, **options: b"")
    sections = ["explorer", "representations", "superposition"]
    path = embedded.write_report(tmp_path / "report", sections)
    page = path.read_text("utf-8")

    assert "peer: a sum of parts explains" in page
    assert "Sums of parts, layer by layer" in page
    assert 'href="#section-superposition"' not in page  # which is of images
    assert 'href="#section-representations"' in page
    assert '"items":[' in page
    assert (tmp_path / "report/table_layers.csv").exists()


def test_pictures_and_tables_of_factors_alone():
    rows = [0, 77, 150]
    table = tfcomp.FactorTable(
        None,
        INDEX,
        names=["shape", "x", "y"],
    )

    with_images = tfcomp.evaluate_embeddings(NOISY, TABLE, REGION)
    without = tfcomp.evaluate_embeddings(SUM, table, "x:2,y:3-5")

    # Of the nearest items.
    truth = with_images.analysis.evaluation.truth[rows]
    pictures = with_images.dataset.to_pictures(truth)
    images = make_images()
    assert_array_equal(pictures[..., 0], images[rows])

    error = without.scores["ood"]["relative_mse"]
    shades = without.dataset.to_pictures(truth)
    assert error < 1e-9
    assert shades.shape == (3, 4, 4, 1)
    assert 0 <= shades.min() < shades.max() <= 1
    assert "192 rows" in repr(table)
    with pytest.raises(ValueError, match="images must be given"):
        table.draw(table.points)


def test_several_rows_of_a_combination(rng):
    """Scores are over all rows; the composition is of their means."""
    numbers = np.arange(192)
    rows = np.repeat(numbers, 1 + numbers % 3)
    rows = rng.permutation(rows)
    noise = 0.5 * rng.normal(size=(len(rows), 16))
    values = SUM[rows] + noise

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
    share = 0.25 * 16 / values.var(axis=0).sum()
    r2 = get_additive_r2(report)
    assert 1 - r2 == approx(share, rel=0.1)


@pytest.mark.parametrize(
    ("embeddings", "word"),
    [
        (SUM[:5], "rows"),
        (np.where(SUM > 2, np.nan, SUM), "finite"),
        (SUM.astype(str), "numbers"),
        ({"image": SUM}, "image"),
    ],
)
def test_mistakes_are_one_line(embeddings, word):
    with pytest.raises(ValueError, match=word) as caught:
        tfcomp.evaluate_embeddings(embeddings, FRAME)
    assert "\n" not in str(caught.value)


def make_encoder() -> keras.Model:
    images = keras.Input((12, 12, 1))
    convolution = keras.layers.Conv2D(
        filters=4,
        kernel_size=3,
        activation="relu",
        name="conv",
    )
    dense = keras.layers.Dense(6, name="code")
    flat = keras.layers.Flatten()(convolution(images))
    return keras.Model(images, dense(flat))


def encode_once(encoder, **options) -> tfcomp.ModelReport:
    return tfcomp.evaluate_encoder(
        encoder,
        TABLE,
        REGION,
        codes=False,
        **options,
    )


def test_layers_of_an_encoder():
    encoder = make_encoder()
    report = encode_once(encoder)

    assert report.stages == ["conv", "latents", "image"]
    latents = report.activations("latents")
    expected = encoder.predict(IMAGES, verbose=0)
    assert_allclose(latents, expected, atol=1e-5)


def test_named_layers_of_a_function():
    def encode(images: np.ndarray) -> dict[str, np.ndarray]:
        return {"pixels": images, "mean": images.mean(axis=(1, 2))}

    report = encode_once(encode, layers=["pixels"])

    assert report.stages == ["pixels", "latents", "image"]


def test_an_encoder_sees_all_images_of_a_combination():
    """Means of an image and its negative would be gray."""
    images = np.concatenate([make_images(), 1 - make_images()])
    rows = np.tile(INDEX, (2, 1))
    table = tfcomp.FactorTable(
        images,
        rows,
        names=TABLE.space.names,
    )
    region = "x:2,y:3-5"

    def encode(images: np.ndarray) -> np.ndarray:
        return project(images) ** 2

    encoded = tfcomp.evaluate_encoder(
        encode,
        table,
        region,
        codes=False,
    )
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
        tfcomp.evaluate_encoder(
            encode,
            table,
            decoder=encode,
        )


@pytest.mark.usefixtures("few_trees", "no_layout")
def test_an_autoencoder_in_one_report():
    """A decoder that renders images from latents that are the factors."""
    rows = (INDEX[:, 1:] < 4).all(axis=1)
    index = INDEX[rows]
    images = make_images()[rows]
    table = tfcomp.FactorTable(
        images,
        index,
        names=TABLE.space.names,
    )
    latents = {}
    for image, row in zip(images, index, strict=True):
        latents[image.tobytes()] = row

    def encode(images: np.ndarray) -> np.ndarray:
        rows = [latents[image.tobytes()] for image in images]
        return np.float32(rows)

    report = tfcomp.evaluate_encoder(
        encode,
        table,
        "x:2-3,y:2-3",
        decoder=table.draw,
    )

    assert report.stages == ["latents", "image"]
    assert report.scores["ood"]["mse"] == approx(0, abs=1e-9)
    codes = report.tables["codes"].set_index("score")
    assert codes["value"].isna().all()  # of 12 images of a value
    assert set(codes["n"]) == {48}
    section = MAKERS["representations"]([report.analysis])
    assert "table_codes" in {exhibit.name for exhibit in section.exhibits}


def test_interactions_of_rows_in_any_order(rng):
    """A product of two factors."""
    _, of_x, of_y = PARTS
    _, x, y = INDEX.T
    product = of_x[x] * of_y[y]
    order = rng.permutation(len(INDEX))
    values = (SUM + product)[order]
    frame = FRAME.iloc[order]
    tensor = tf.constant(values, "float32")

    report = tfcomp.evaluate_embeddings(tensor, frame)
    lacking = tfcomp.evaluate_embeddings(values[1:], frame.iloc[1:])

    # What a sum over x and y leaves of the product.
    pairs = product.reshape(3, 8, 8, 16)[0]
    pairs = pairs - pairs.mean(axis=0)
    pairs -= pairs.mean(axis=1, keepdims=True)
    of_pairs = 3 * np.square(pairs).sum()
    total = 192 * values.var(axis=0).sum()
    row = report.run.tables["layers"][0]
    lacking_row = lacking.run.tables["layers"][0]
    assert row["pair_share"] == approx(of_pairs / total, rel=1e-4)
    assert lacking_row["pair_share"] is None


@pytest.mark.parametrize("region", ["shape:bar", INDEX[:, 0] == 2])
def test_values_held_out_altogether_are_named(region, capsys):
    report = tfcomp.evaluate_embeddings(NOISY, TABLE, region)

    said = capsys.readouterr().err
    assert "accuracy_ood is without shape bar:" in said
    assert "held out: 64 of 192 combinations" in said
    assert "1 held out altogether" in said
    assert "accuracy_ood is without shape bar:" in report.run.description
    given = report.tables["parts"].query("classes == 'given'")
    accuracy = given.set_index("factors")["accuracy_ood"]
    assert np.isnan(accuracy["shape"])
    mean = report.tables["layers"]["accuracy_ood"][0]
    assert mean == approx(accuracy[["x", "y"]].mean())


def test_an_encoder_that_samples_is_averaged(rng, capsys):
    """The variance of the noise falls with the number of calls."""

    def encode(images: np.ndarray) -> np.ndarray:
        latents = project(images)
        return latents + rng.normal(size=latents.shape)

    once = encode_once(encode)
    assert "samples=10" in capsys.readouterr().err
    averaged = encode_once(encode, samples=30)
    assert "means of 30 calls" in capsys.readouterr().err
    steady = encode_once(project)
    assert "call" not in capsys.readouterr().err

    noise = averaged.activations("latents") - project(IMAGES)
    assert noise.var() == approx(1 / 30, rel=0.1)
    expected = get_additive_r2(steady)
    assert get_additive_r2(once) < 0.5 * expected
    assert get_additive_r2(averaged) == approx(expected, rel=0.35)
    with pytest.raises(ValueError, match="samples"):
        encode_once(encode, samples=0)


Outputs = namedtuple("Outputs", ["loss", "latents"])


def make_tokens(images: np.ndarray) -> np.ndarray:
    """Embeddings of three tokens, [n, 3, units]."""
    tokens = [project(images)] * 3
    return np.stack(tokens, axis=1)


@pytest.mark.parametrize(
    ("encoder", "taken"),
    [
        (
            lambda images: OrderedDict(
                last_hidden_state=make_tokens(images),
                pooler_output=project(images),
                hidden_states=(images, images),
            ),
            "pooler_output",
        ),
        (
            lambda images: {
                "last_hidden_state": project(images),
                "attentions": (images, images),
            },
            "last_hidden_state",
        ),
        (
            lambda images: {"early": images, "late": project(images)},
            "late",
        ),
        (lambda images: Outputs(0.0, project(images)), ""),
        (lambda images: {"late": project(images)}, ""),
        (lambda images: list(project(images)), ""),
    ],
    ids=["pooled", "tokens", "last", "latents", "only", "rows"],
)
def test_one_of_several_outputs_is_the_embedding(
    encoder,
    taken,
    capsys,
):
    report = encode_once(encoder)

    latents = report.activations("latents")
    assert_allclose(latents, project(IMAGES), atol=1e-6)
    said = capsys.readouterr().err
    assert ("output" in said) == bool(taken)
    assert taken in said
    assert taken in report.run.description


@pytest.mark.parametrize(
    ("encoder", "layers", "words"),
    [
        (lambda images: (images, images), (), "no latents, but 2 outputs"),
        (lambda images: [images, images], (), "no latents, but 2 outputs"),
        (lambda images: {"a": (images,)}, (), "no latents, but 1 outputs"),
        (lambda images: {}, (), "no latents, but 0 outputs"),
        (lambda images: images[:1], (), "latents must have a row for each"),
        (lambda images: images, ("early",), "early"),
        (make_encoder(), ("convv",), "convv"),
    ],
    ids=[
        "tuple",
        "list",
        "nested",
        "nothing",
        "one row",
        "no such entry",
        "no such layer",
    ],
)
def test_encoders_of_other_forms(encoder, layers, words):
    with pytest.raises(ValueError, match=words) as caught:
        encode_once(encoder, layers=layers)

    message = str(caught.value)
    assert "\n" not in message
    assert "factors" not in message
