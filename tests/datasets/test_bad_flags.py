"""Impossible settings of datasets and models are one line that names a flag."""

import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import parse_config
from tfcomp.models.config_checks import check_config

SPRITES = "--dataset=sprites --model=mlp --region="
COMPOSED = "--dataset=composed --model=mlp --region="
BAD = [
    ("--region=square:0-27", "--region must leave at least one combination"),
    ("--region=square:3.2-3.8", "--region must hold out at least one"),
    ("--region=xx:2-3", "--region must be one of: .* did you mean"),
    ("--region=random:2", "--region must be random:SHARE"),
    ("--region=random:nan", "--region must be random:SHARE"),
    ("--region=file:/none/at/all.csv", "--region must name a readable CSV"),
    ("--region=file:/dev/zero", "--region must name a readable CSV"),
    ("--region=x:#1.5", "--region must have bounds of the form LOW-HIGH"),
    ("--region=x:#40", "--region must lie in the range of x, #0 to #27"),
    ("--region=uselis:3:3", "--region must be uselis:N:K"),
    ("--region=uselis:40:2", "--region must have two factors or more"),
    ("--region=montero:element", "--region of this kind needs the factors of"),
    (f"{SPRITES}shape:star", "bounds .* or one of square, ellipse, heart"),
    (f"{SPRITES}none --sprite_sizes=4,3,6,8,8", "--sprite_sizes must be"),
    (f"{SPRITES}none --sprite_sizes=1,1,1,1,1", "--sprite_sizes must have"),
    (f"{COMPOSED}wiedemer:orthogonal:x_a", "--region must name each factor"),
    (f"{COMPOSED}wiedemer:diagonal:.5:x_a,y_a+x_b+y_b", "--region must have"),
    ("--num_train=9999", "--num_train must be at most the 495 ID cells"),
    ("--num_bumps=1", "--num_bumps must be 0 for the dataset gaussian_bumps"),
    ("--rank=0", "--rank must be"),
    ("--model=coordinate --width=6", "--width must be a multiple of 4"),
]


@pytest.mark.parametrize(("line", "words"), BAD)
def test_bad_flags_are_one_line(line: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        check_config(parse_config(line.split()))
    assert "\n" not in str(caught.value)
