"""Writes the pipeline as YAML, for Kubeflow Pipelines or Vertex AI.

    python -m pipelines.compile --output=pipeline.yaml --profile=quick

The file contains the profile, as the default value of a parameter.
"""

from pathlib import Path
from typing import Any

from pipelines.profile import PROFILE_FLAGS, load_profile
from tfcomp.config.errors import ConfigError
from tfcomp.config.process import exit_on_user_error
from tfcomp.config.run_flags import Command
from tfcomp.storage.files import check_folder, make_folder, write_atomically

FLAGS = {
    "output": ("pipeline.yaml", "The file to write."),
    **PROFILE_FLAGS,
    "base_image": (
        "tfcomp-python:latest",
        "The image of the steps, built from pipelines/Dockerfile.",
    ),
}


def write_pipeline(settings: dict[str, Any]) -> int:
    """Checks the settings, then compiles the pipeline."""
    output = Path(settings["output"])
    if output.suffix not in (".yaml", ".yml"):
        raise ConfigError("output", "must end in .yaml", settings["output"])
    check_folder("output", str(output.parent))
    profile = load_profile(settings["profile"], settings["plugins"])

    # The SDK is imported after the flags have been checked.
    from kfp import compiler

    from pipelines.pipeline import make_pipeline

    pipeline = make_pipeline(
        profile=profile.to_json(), base_image=settings["base_image"]
    )

    make_folder(output.parent)
    with write_atomically(output) as partial:
        compiler.Compiler().compile(pipeline, str(partial))
    print(f"pipeline  {output}")
    return 0


main = Command(__doc__, FLAGS, write_pipeline)

if __name__ == "__main__":
    exit_on_user_error(main)
