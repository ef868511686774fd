"""`tfcomp study decoders` whose plan is one sweep of two small networks."""

import dataclasses
import sys

from tfcomp import study
from tfcomp.config.command import exit_on_user_error
from tfcomp.studies.study import STUDIES

if __name__ == "__main__":
    plan = ("smoke --run_name=tiny --seeds=2 --epochs=2 --width=8 --measure",)
    STUDIES["decoders"] = dataclasses.replace(STUDIES["decoders"], plan=plan)
    sys.argv[1:1] = ["decoders"]
    exit_on_user_error(study.main)
