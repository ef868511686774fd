"""How much data a decoder needs (section 4.2, figure 4c).

`search` finds the smallest number of bumps that reaches a target, and knows
nothing of networks. `cases` lists the searches of a command, `one_search` is
the process of one of them, `threshold_trial` trains and scores one decoder,
and `threshold_tables` fits how the number of bumps grows with the grid.
"""
