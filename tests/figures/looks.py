"""What tests of figures look at: legends, outlines, texts that overlap."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure


def get_legend(figure: Figure) -> list[str]:
    """The texts of the legends of a figure."""
    return [
        text.get_text() for legend in figure.legends for text in legend.texts
    ]


def get_image_axes(figure: Figure) -> list[Axes]:
    """The axes that show an image."""
    return [axes for axes in figure.axes if axes.images]


def get_outline(axes: Axes) -> list:
    """The segments of the one collection of lines of axes."""
    (lines,) = axes.collections
    return [tuple(map(tuple, s)) for s in lines.get_segments()]


def assert_text_is_apart(figure: Figure) -> None:
    """Checks that titles, names and legends are whole and do not overlap."""
    figure.draw_without_rendering()
    texts = figure.texts + figure.legends
    for axes in figure.axes:
        texts += [axes.title, axes.xaxis.label, axes.yaxis.label]
    boxes = [t.get_window_extent() for t in texts if t.get_visible()]
    boxes = [box for box in boxes if box.width > 1 and box.height > 1]
    for index, box in enumerate(boxes):
        assert box.x0 >= 0 and box.x1 <= figure.bbox.width, texts[index]
        assert box.y0 >= 0 and box.y1 <= figure.bbox.height, texts[index]
        assert not any(box.overlaps(other) for other in boxes[:index])
