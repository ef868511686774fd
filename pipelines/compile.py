"""Writes the pipeline as YAML, for Kubeflow Pipelines or Vertex AI.

    python -m pipelines.compile --output=pipeline.yaml --profile=quick

The file contains the profile, as the default value of a parameter.
"""

from pathlib import Path
from typing import Any

from pipelines.profile import PROFILE_FLAG, load_profile
from tfcomp.config.command import exit_on_user_error, run_command
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_flags import make_flags
from tfcomp.storage.files import make_folder, write_whole
from tfcomp.storage.output_folders import check_folder

FLAGS = {
    "output": ("pipeline.yaml", "The file to write."),
    **PROFILE_FLAG,
    "base_image": (
        "",
        "The image of the steps, built from pipelines/Dockerfile. The default "
        "is tfcomp-python:latest.",
    ),
}


def main(argv: list[str]) -> int:
    """Runs the command and returns its exit status."""
    return run_command(argv, __doc__, make_flags(FLAGS), write_pipeline)


def write_pipeline(settings: dict[str, Any]) -> int:
    """Checks the settings, then compiles the pipeline."""
    output = Path(settings["output"])
    if output.suffix not in (".yaml", ".yml"):
        raise ConfigError("output", "must end in .yaml", settings["output"])
    check_folder("output", str(output.parent))
    profile = load_profile(settings["profile"], settings["trust_plugins"])
    compile_pipeline(profile.to_json(), output, settings["base_image"])
    print(f"pipeline  {output}")
    return 0


def compile_pipeline(profile: str, output: Path, base_image: str = "") -> None:
    """Writes the pipeline with a profile, given as JSON."""
    # The SDK is imported after the flags have been checked.
    from kfp import compiler

    from pipelines.components import BASE_IMAGE
    from pipelines.pipeline import make_pipeline

    pipeline = make_pipeline(profile, base_image or BASE_IMAGE)
    try:
        make_folder(output.parent)
        with write_whole(output) as partial:
            compiler.Compiler().compile(pipeline, str(partial))
    except OSError as error:
        raise RunError(f"--output must be writable: {error}") from error


if __name__ == "__main__":
    exit_on_user_error(main)
