"""Writes the pipeline as YAML, for Kubeflow Pipelines or Vertex AI.

    python -m pipelines.compile --output=pipeline.yaml --profile=quick

The file is complete: the profile is the default of a parameter.
"""

from __future__ import annotations

from pathlib import Path

from absl import flags

from pipelines.profile import load_profile
from tfcomp.config.errors import ConfigError
from tfcomp.config.errors import RunError
from tfcomp.config.errors import exit_on_user_error
from tfcomp.config.run_flags import parse_flags
from tfcomp.config.run_flags import print_help
from tfcomp.config.run_flags import wants_help


def main(argv: list[str]) -> int:
    """Compiles; returns the exit status."""
    values = define_flags()
    if wants_help(argv[1:]):
        print_help(__doc__, values)
        return 0
    settings = parse_flags(argv[1:], values)
    output = Path(settings["output"])
    if output.suffix not in (".yaml", ".yml"):
        raise ConfigError("output", "must end in .yaml", settings["output"])
    profile = load_profile(settings["profile"])
    compile_pipeline(profile.to_json(), output, settings["base_image"])
    print(f"pipeline  {output}")
    return 0


def compile_pipeline(profile: str, output: Path, base_image: str = "") -> None:
    """Writes the pipeline with a profile, in one step.

    Args:
        profile: The profile as JSON.
        output: The YAML file.
        base_image: Image of the steps; empty for that of the Dockerfile.

    Raises:
        RunError: If the file cannot be written.
    """
    # The SDK is imported after the flags have been checked.
    from kfp import compiler

    from pipelines.pipeline import make_pipeline
    from pipelines.steps.component_settings import BASE_IMAGE

    pipeline = make_pipeline(profile, base_image or BASE_IMAGE)
    partial = output.with_name(f".partial-{output.name}")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        compiler.Compiler().compile(pipeline, str(partial))
        partial.replace(output)
    except OSError as error:
        raise RunError(f"--output must be writable: {error}") from error


def define_flags() -> flags.FlagValues:
    """The flags of the command."""
    values = flags.FlagValues()
    strings = {
        "output": ("pipeline.yaml", "The file to write."),
        "profile": ("smoke", "smoke, quick, paper, or a folder of your own."),
        "base_image": (
            "",
            "Image of the steps, built from pipelines/Dockerfile; default "
            "tfcomp-python:latest.",
        ),
    }
    for name, (default, text) in strings.items():
        flags.DEFINE_string(name, default, text, flag_values=values)
    return values


if __name__ == "__main__":
    exit_on_user_error(main)
