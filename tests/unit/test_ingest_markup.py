"""HTML to text, and plain text that must stay as it is."""

from __future__ import annotations

import time

import pytest

from clustering.ingest.markup import text_of


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("plain words", "plain words"),
        ("<p>One</p><p>Two</p>", "One\nTwo"),
        ("One<br>Two<br/>Three", "One\nTwo\nThree"),
        ("<b>Bold</b> and <i>thin</i>.", "Bold and thin."),
        ('<a href="/x">Link</a>, text', "Link, text"),
        ("<ul><li>One</li><li>Two</li></ul>", "One\nTwo"),
        ("<p>x</p><script>alert('a < b')</script><style>p{}</style>", "x"),
        ('before <img src="a.jpg" alt="no"> after', "before after"),
        ("a<!-- hidden -->b", "ab"),
        ("<![CDATA[<p>Inside</p>]]>", "Inside"),
        ("Fish &amp; chips", "Fish & chips"),
        ("caf&eacute; &#8211; &#x41;", "café – A"),
        ("&lt;p&gt;escaped twice&lt;/p&gt;", "escaped twice"),
        ("<p>&amp;lt;3</p>", "<3"),
        ("&amp;amp; once more</p>", "& once more"),
        ("<p>unclosed <b>tag", "unclosed tag"),
        ("<table><tr><td>1</td><td>2</td></tr></table>", "1\n2"),
        ("<p> \n spaced \t out&nbsp;text </p>", "spaced out text"),
        ("<p>NUL\x00 here\x07</p>", "NUL here"),
        ("", ""),
    ],
)
def test_markup_becomes_text(written, plain):
    assert text_of(written) == plain


@pytest.mark.parametrize(
    "text",
    [
        "a < b and c > d",
        "AT&T and R&D",
        "Tom & Jerry",
        "the <b> tag explained",
        "https://x.example/?a=1&copy=2&lt=3",
        "x<y>z",
        "I <3 you",
        "C++ vector<int> v;",
    ],
)
def test_plain_text_passes_unharmed(text):
    assert text_of(text) == text


def test_declared_html_is_flattened_even_without_signs():
    assert text_of("the <b>bold one", html=True) == "the bold one"
    assert text_of("the <b> one") == "the <b> one"


@pytest.mark.parametrize("tag", ["div", "b", "blockquote", "span"])
def test_deep_nesting_takes_no_time(tag):
    deep = f"<{tag}>" * 200_000 + "core" + f"</{tag}>" * 200_000
    started = time.process_time()
    assert text_of(deep) == "core"
    assert time.process_time() - started < 3


@pytest.mark.parametrize("piece", ["<", "&", "<p", "<!--", "<a href='", "&amp;", "</", "<![CDATA["])
def test_repeated_pieces_take_linear_time(piece):
    started = time.process_time()
    text_of(piece * (1_000_000 // len(piece)), html=True)
    assert time.process_time() - started < 3
