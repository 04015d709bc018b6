"""Figures that no display owns, and their colours."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from clustering.errors import PlotError

try:
    from matplotlib.figure import Figure
    from matplotlib.font_manager import findfont, get_font
except ImportError as error:
    raise PlotError("charts need matplotlib; pip install 'story-clustering[notebook]'") from error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

# Okabe and Ito (2008), without the yellow that vanishes on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
BLUE, ORANGE, GREEN = COLOURS[:3]
GREY = "#BBBBBB"
_DPI = 110
_BOX = "\N{WHITE VERTICAL RECTANGLE}"


class Chart(Figure):
    """A figure that a notebook shows although no display owns it."""

    def _repr_png_(self) -> bytes:
        image = BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()


def panels(count: int, *, width: float = 5.0, height: float = 3.6) -> tuple[Figure, list[Axes]]:
    """Return a figure with some axes side by side, at most three a row.

    Args:
        count: number of axes, 1 or more.
        width: of each, inches.
        height: of each, inches.
    """
    across = min(count, 3)
    down = -(-count // across)
    figure = Chart(figsize=(width * across, height * down), dpi=_DPI, layout="constrained")
    axes = [figure.add_subplot(down, across, place + 1) for place in range(count)]
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def name_of(titles: Sequence[str], most_chars: int = 46) -> str:
    """Return the first title that the font has all characters of, else the first with boxes for the rest.

    The font of every installation, DejaVu Sans, has Latin, Greek, Cyrillic, Arabic and Hebrew, and
    neither Chinese nor any Indian script.

    Args:
        titles: one or more.
        most_chars: where the name is cut.
    """
    font = get_font(findfont("DejaVu Sans"))
    whole = [title for title in titles if all(font.get_char_index(ord(c)) for c in title)]
    if whole:
        return whole[0][:most_chars]
    return "".join(c if font.get_char_index(ord(c)) else _BOX for c in titles[0])[:most_chars]
