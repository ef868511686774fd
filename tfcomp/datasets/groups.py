"""Groups of factors, which together describe an object."""

from tfcomp.datasets.factors import FactorSpace


def parse_groups(spec: str, space: FactorSpace) -> list[list[int]]:
    """Columns of the factors of every group.

    The spec names them, as `x_a+y_a,x_b+y_b`; if it is empty, each factor is
    a group.

    Raises:
        ValueError: If it does not name each factor once.
    """
    if not spec:
        return [[column] for column in range(len(space))]
    groups = [group.split("+") for group in spec.split(",")]
    if sorted(sum(groups, [])) != sorted(space.names):
        factors = ", ".join(space.names)
        raise ValueError(
            f"must name each factor once ({factors}), as in x_a+y_a,x_b+y_b"
        )
    return [[space.names.index(name) for name in group] for group in groups]
