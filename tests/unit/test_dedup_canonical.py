from __future__ import annotations

import html
import time

import pytest

from clustering.dedup.canonical import canonical_text, plain_text

TEXT = "The river rose two metres overnight. The lower town was cleared before dawn."
CANONICAL = TEXT.casefold()


@pytest.mark.parametrize(
    "dressed",
    [
        f"<p>{TEXT}</p>",
        "<div class='story'><p>The <b>river</b> rose two <a href='/m?a=1&amp;b=2'>metres</a> overnight.</p><p>The lower town was cleared before dawn.</p></div>",
        "The river rose two metres overnight.<br/>The lower town was cleared before dawn.",
        f"<script>if (a < b) {{ go() }}</script><style>p {{ top: 0 }}</style><!-- ad --> {TEXT}",
        TEXT.replace(" ", "&nbsp;"),
        TEXT.replace("r", "&#114;").replace("t", "&#x74;"),
        html.escape(html.escape(f"<p>{TEXT}</p>")),
        TEXT.replace("metres", "me\u00adtres").replace("dawn", "da\u200bwn"),
        f"\ufeff{TEXT}",
    ],
)
def test_html_entities_and_invisible_characters_leave_no_trace(dressed):
    assert canonical_text(dressed) == CANONICAL


def test_a_block_parts_words_and_a_letter_in_bold_does_not():
    assert plain_text("<p>one</p><p>two</p>").split() == ["one", "two"]
    assert plain_text("<b>O</b>ne") == "One"


@pytest.mark.parametrize(
    "text", ["a < b and b > c", "5 <6", "AT&T", "x &y; z", "fish & chips", "<3"]
)
def test_signs_that_are_no_html_stay(text):
    assert plain_text(text) == text


@pytest.mark.parametrize(
    "ending",
    [
        "\nThe post Flood in the lower town appeared first on Coast Radio.",
        "\n© 2026 Coast Radio",
        "\nCopyright 2026 by Coast Radio. All rights reserved.",
        "\nAll rights reserved.",
        "\nRead more",
        "\nContinue reading…",
        "\nLire la suite",
        "\nЧитать далее",
        "\n続きを読む",
        "\nFollow us on every platform there is",
        "\nSign up for our newsletter and never miss a flood",
        " (Reuters)\n© 2026 Coast Radio\nRead more",
        "\nQuelle: dpa",
        "\nИсточник: ТАСС",
        "\n来源:新华社",
        " (Reuters) - North Wire",
    ],
)
def test_what_a_publishing_system_adds_is_no_part_of_a_text(ending):
    assert canonical_text(TEXT + ending) == CANONICAL


@pytest.mark.parametrize(
    "line", ["By Jane Doe", "BY JANE DOE AND JOHN ROE", "Von Erika Muster", "Par Jeanne Doe"]
)
def test_a_byline_is_no_part_of_a_text(line):
    assert canonical_text(f"{line}\n{TEXT}") == CANONICAL


@pytest.mark.parametrize(
    "text",
    [
        "By dawn the town was empty.\nNobody was hurt.",
        "By dawn the town was empty",
        "Nobody was hurt.\nRead more is what the sign said, and so they did, for hours on end.",
        "Read more",
        "Copyright law changes today.\nPublishers rejoice.",
    ],
)
def test_lines_that_say_something_stay(text):
    assert canonical_text(text) == " ".join(text.casefold().split())


@pytest.mark.parametrize(
    "text",
    [
        "one (a) (b) - c | d",
        "by x y\nby z w\nread more",
        "text\n© 1\n(x)\nsource: y",
        "&amp;amp;lt;p&amp;gt;x",
        "＜b＞x＜/b＞",
        "İ ß ŉ ﬁ",
        "",
        "-",
    ],
)
def test_canonical_text_is_its_own_canonical_text(text):
    assert canonical_text(canonical_text(text)) == canonical_text(text)


@pytest.mark.parametrize(
    "hostile",
    [
        "&" + "amp;" * 200_000,
        "- x " * 250_000,
        "(x) " * 250_000,
        "<" * 500_000,
        "<a " * 300_000,
        "<script>" * 100_000,
        "read more\n" * 100_000,
        "by x y\n" * 100_000,
        "&lt;b" * 200_000,
        "<!--" * 200_000,
    ],
    ids=lambda text: text[:8],
)
def test_hostile_text_takes_no_longer_than_its_length(hostile):
    start = time.process_time()
    canonical_text(hostile)
    assert time.process_time() - start < 5
