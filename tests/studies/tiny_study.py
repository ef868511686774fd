"""`tfcomp study decoders` whose plan is one sweep of two small networks."""

import sys

from tfcomp import study
from tfcomp.config.command import exit_on_user_error
from tfcomp.studies.study import PLANS

if __name__ == "__main__":
    PLANS["decoders"] = (
        "smoke --run_name=tiny --seeds=2 --epochs=2 --width=8 --measure",
    )
    sys.argv[1:1] = ["decoders"]
    exit_on_user_error(study.main)
