"""Version 2 of the claims: rules fixed before the seeds that they judge.

Every file declares the claims of one experiment, with their controls: planted
numbers that pass through the same tests. Of planted outputs the numbers are
what the measures find in them, as the suite checks.
"""

from tfcomp.claims.fresh import composition
from tfcomp.claims.fresh import geometry
from tfcomp.claims.fresh import others
from tfcomp.claims.fresh import rendering
from tfcomp.claims.fresh import stripes

_PARTS = composition, geometry, rendering, stripes, others
CLAIMS = tuple(
    sorted(
        (claim for part in _PARTS for claim in part.CLAIMS),
        key=lambda claim: int(claim.name[1:]),
    )
)
