"""How the steps are made into components."""

import functools

from kfp import dsl

# Built from `pipelines/Dockerfile`; `python -m pipelines.compile` can name
# another one.
BASE_IMAGE = "tfcomp-python:latest"

# The image has kfp and tfcomp: nothing is installed when a step starts.
component = functools.partial(
    dsl.component, base_image=BASE_IMAGE, install_kfp_package=False
)
