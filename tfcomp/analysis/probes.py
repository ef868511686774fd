"""Linear probes: how well a layer's activations predict the factors.

Ridge regression from the activations of one stage to the factors, scored by
R^2 (uniform average over factors) on points that it was not fitted to: out
of fold among ID points, and transferred from ID to OOD points. A fit scored
on its own points has an R^2 of 1 for noise once there are more units than
points, as in every convolution stage.

Activations are normalized and rotated as in `features`.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold
from sklearn.model_selection import cross_val_predict

from tfcomp.analysis.features import rotate_features
from tfcomp.analysis.threads import single_threaded

# In units of the squared length of a typical row. Below 1e-4, the float32
# rounding of the Gram matrix shows; at 1e4 nothing is left of a prediction.
PENALTIES = np.logspace(-4, 4, 9)
NUM_FOLDS = 5
# Two points per fold, for the inner cross-validation as well.
MIN_POINTS = 2 * NUM_FOLDS


@single_threaded
def compute_probe_scores(
    activations: np.ndarray,
    targets: np.ndarray,
    is_ood: np.ndarray,
    seed: int = 0,
) -> dict[str, float | None]:
    """Cross-validated and transferred R^2 of a linear probe.

    The penalty is chosen by leave-one-out cross-validation inside whatever
    points a fit sees.

    Args:
        activations: One stage, [n, ...]; flattened to [n, units].
        targets: Factor values [n, T].
        is_ood: Whether each point lies in the held-out region, [n].
        seed: Of the shuffle that deals ID points into folds.

    Returns:
        `probe_r2_id`: out-of-fold R^2 over ID points; `probe_r2_ood`: R^2
        over OOD points of a probe fitted to all ID points. None where there
        are too few points (10 ID, 2 OOD), no target varies, or activations
        are not finite. At or below about 0 for activations that say nothing.
    """
    is_ood = np.asarray(is_ood, bool)
    targets = np.asarray(targets, np.float64)
    scores = {"probe_r2_id": None, "probe_r2_ood": None}
    if np.count_nonzero(~is_ood) < MIN_POINTS:
        return scores
    if not np.isfinite(activations).all():
        return scores
    features = rotate_features(activations, is_ood)  # [n, at most n]
    features_id, targets_id = features[~is_ood], targets[~is_ood]
    probe = RidgeCV(alphas=PENALTIES)
    folds = KFold(NUM_FOLDS, shuffle=True, random_state=seed)
    predicted = cross_val_predict(probe, features_id, targets_id, cv=folds)
    scores["probe_r2_id"] = _score(targets_id, predicted)
    if np.count_nonzero(is_ood) >= 2:
        predicted = probe.fit(features_id, targets_id).predict(features[is_ood])
        scores["probe_r2_ood"] = _score(targets[is_ood], predicted)
    return scores


def _score(truth: np.ndarray, predicted: np.ndarray) -> float | None:
    # A factor that is constant over these points has no variance to explain.
    varies = np.ptp(truth, axis=0) > 0  # [T]
    predicted = predicted.reshape(truth.shape)  # [n] if there is one factor
    if not varies.any():
        return None
    return float(r2_score(truth[:, varies], predicted[:, varies]))
