"""The constraints file has a version of all that the project asks for."""

import configparser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
# Not installed by the commands of the README.
LEFT_OUT = {"gpu", "torch"}


def read_requirements() -> list[Requirement]:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lines = setup["options"]["install_requires"].splitlines()
    for extra, text in setup["options.extras_require"].items():
        lines += text.splitlines() if extra not in LEFT_OUT else []
    return [Requirement(n) for n in lines if n and not n.startswith("#")]


def read_pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pins}


def test_every_requirement_has_a_version_in_its_range() -> None:
    pins = read_pins()
    for needed in read_requirements():
        assert pins[canonicalize_name(needed.name)] in needed.specifier, needed
