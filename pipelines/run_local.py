"""Runs the pipeline on this machine, from examples to a pushed model.

    python -m pipelines.run_local --profile=smoke

The steps are those that `python -m pipelines.compile` writes for a cluster.
What a start has done is not repeated by the next one with --resume.
"""

from __future__ import annotations

from absl import flags

from pipelines.local.pipeline_progress import count
from pipelines.local.root import LocalRoot
from pipelines.local.root import check_path
from pipelines.profile import Profile
from pipelines.profile import load_profile
from pipelines.profile import make_studies
from pipelines.profile import make_sweeps
from pipelines.profile import replace_missing_digits
from tfcomp.config.errors import exit_on_user_error
from tfcomp.config.quiet import quiet_startup
from tfcomp.config.run_flags import parse_flags
from tfcomp.config.run_flags import print_help
from tfcomp.config.run_flags import wants_help
from tfcomp.sweeps.scheduling import SchedulerOptions
from tfcomp.sweeps.scheduling import check_scheduler


def main(argv: list[str]) -> int:
    """Checks everything, runs the steps; returns the exit status."""
    values = define_flags()
    if wants_help(argv[1:]):
        print_help(__doc__, values)
        return 0
    settings = parse_flags(argv[1:], values)
    scheduler = SchedulerOptions(settings["workers"], settings["scheduler"])
    check_path("export_dir", settings["export_dir"])
    profile = replace_missing_digits(load_profile(settings["profile"]))
    default = f"pipeline_runs/{profile.name}"
    root = LocalRoot(settings["pipeline_root"] or default)
    root.check(profile.name, settings["resume"])
    check_scheduler(scheduler)
    print(describe_profile(profile))
    print(f"log      {root.log}", flush=True)
    with quiet_startup():
        from pipelines.local.local_pipeline import LocalOptions
        from pipelines.local.local_pipeline import run_pipeline
    options = LocalOptions(
        settings["export_dir"], settings["workers"], settings["scheduler"]
    )
    run_pipeline(profile, root, options)
    return 0


def define_flags() -> flags.FlagValues:
    """The flags of the command."""
    values = flags.FlagValues()
    strings = {
        "profile": ("smoke", "smoke, quick, paper, or a folder of your own."),
        "export_dir": (
            "saved_models",
            "Models are pushed to <export_dir>/<name>/<version>/.",
        ),
        "pipeline_root": (
            "",
            "Folder of this pipeline; default pipeline_runs/<profile>.",
        ),
        "scheduler": (
            "",
            "Address of a Dask scheduler, whose workers share the folders.",
        ),
    }
    for name, (default, text) in strings.items():
        flags.DEFINE_string(name, default, text, flag_values=values)
    flags.DEFINE_integer(
        "workers",
        0,
        "Trials at a time; 0 is one a GPU, or one.",
        flag_values=values,
    )
    flags.DEFINE_boolean(
        "resume",
        False,
        "Go on with the pipeline in the folder; what is done is kept.",
        flag_values=values,
    )
    return values


def describe_profile(profile: Profile) -> str:
    """What a profile has, a line each."""
    sweeps = make_sweeps(profile)
    parts = [
        count(len(sweeps), "sweep"),
        count(sum(len(sweep.trials) for sweep in sweeps), "trial"),
    ]
    if profile.searches:
        cases = sum(len(study.cases) for study in make_studies(profile))
        parts.append(count(cases, "threshold search", "threshold searches"))
    lines = [f"profile  {profile.name}: {', '.join(parts)}"]
    return "\n".join([*lines, *(f"note     {n}" for n in profile.notes)])


if __name__ == "__main__":
    exit_on_user_error(main)
