"""The paper's campaign: claims, decoders, thresholds and figures.

    python -m reproduction.claims --runs=reproduction/evidence
    python -m reproduction.decoders --runs=reproduction/decoders/evidence
    python -m reproduction.thresholds threshold_quick --workers=2
    python -m reproduction.figures --runs=reproduction/evidence
    python -m reproduction.packing --runs='tensorboard_logs/*'

It lies beside the library in a clone, and not in the wheel. `tfcomp` knows
nothing of it.
"""

from pathlib import Path

from tfcomp.config import run_flags

# The campaign's flagfiles are found by name, as tfcomp's own are.
FLAGFILES = Path(__file__).resolve().parent / "flagfiles"
run_flags.add_folder(FLAGFILES)
