"""Numbers to matplotlib figures, one file a kind of figure.

Every `draw_*` function returns a `matplotlib.figure.Figure` of its own, with
a title unless that is empty, and raises a `ValueError` if its arguments do not
fit each other. Nothing goes through the global state of pyplot, so that
figures can be drawn in callbacks and threads and are freed with their last
reference. Maps and images have x to the right and y upwards, and cell `(i, j)`
of the factor grid at x = i, y = j.
"""
