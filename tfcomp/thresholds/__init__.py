"""How much data a decoder needs (section 4.2, figure 4c).

`search` finds the smallest number of bumps that reaches a target, `trial`
trains one decoder, `power_law` fits how the number grows with the grid. The
first and the last know nothing of networks.
"""
