"""Numbers to matplotlib figures, one file a kind of figure.

Every `draw_*` function returns a `matplotlib.figure.Figure` of its own, without
the global state of pyplot: callbacks and threads can draw. Maps and images have
x to the right and y upwards, and cell `(i, j)` of the grid at x = i, y = j.
"""
