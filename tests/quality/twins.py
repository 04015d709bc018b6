"""Twins of an article, made by rule: the five ways in which a copy differs from its original."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

    from clustering.records import Article

UNSPACED = {"zh-Hans", "zh-Hant", "yue", "ja", "th", "lo", "km", "my"}
ATTRIBUTIONS = (
    "(Reuters)",
    "— North Wire",
    "Source: AFP",
    "By our correspondent in Geneva, with agencies",
    "Reporting by Jane Doe in Nairobi; editing by John Roe.",
    "© 2026 Coast Radio. All rights reserved.",
)


def one_word(article: Article, other: Article, random: Random) -> Article:
    """One word is changed, for one of another article; two characters where words are not separated."""
    body = article.body
    if article.language in UNSPACED:
        place, start = random.randrange(len(body) - 2), random.randrange(len(other.body) - 2)
        return replace(
            article, body=body[:place] + other.body[start : start + 2] + body[place + 2 :]
        )
    words = body.split(" ")
    words[random.randrange(len(words))] = random.choice(other.body.split())
    return replace(article, body=" ".join(words))


def appended(article: Article, other: Article, random: Random) -> Article:
    """A closing paragraph from another article, between a twentieth and a tenth of the length."""
    most = len(article.body) // 10
    length = random.randint(most // 2, most)
    start = random.randrange(max(1, len(other.body) - length))
    return replace(article, body=f"{article.body}\n{other.body[start : start + length]}")


def headline(article: Article, other: Article, random: Random) -> Article:
    """Another headline over the same text."""
    return replace(article, title=other.title)


def attribution(article: Article, other: Article, random: Random) -> Article:
    """A line that says who sent it."""
    return replace(article, body=f"{article.body}\n{random.choice(ATTRIBUTIONS)}")


def marked_up(article: Article, other: Article, random: Random) -> Article:
    """The same text as HTML with entities."""
    paragraphs = (html.escape(line) for line in article.body.splitlines())
    spaced = (line.replace(" ", "&nbsp;", 1) for line in paragraphs)
    return replace(article, body="".join(f'<p class="a">{line}</p>\n' for line in spaced))


#: Least share of twins of bodies over 1,000 characters that must be folded.
ASKED = {one_word: 0.9, appended: 0.7, headline: 1.0, attribution: 1.0, marked_up: 1.0}
