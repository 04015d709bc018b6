from __future__ import annotations

import json

import pytest

from clustering.dedup.urls import names_an_article, normalise_url, tracking_list

TRACKING_PARAMETERS, TRACKING_PREFIXES = tracking_list()


def same(one: str, other: str, *identity: str) -> bool:
    params = frozenset(identity)
    first, second = normalise_url(one, params), normalise_url(other, params)
    assert first is not None
    assert second is not None
    return first == second


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("HTTP://News.Example.COM/A/b?x=1", "https://news.example.com/A/b?x=1"),
        ("https://www.example.org/a/", "https://example.org/a"),
        ("https://example.org:443/a", "https://example.org/a"),
        ("http://example.org:80/a", "https://example.org/a"),
        ("https://example.org:8080/a", "https://example.org:8080/a"),
        ("https://user:secret@example.org/a#top", "https://example.org/a"),
        ("  https://example.org/a \n", "https://example.org/a"),
        ("https://example.org./a", "https://example.org/a"),
        ("https://example.org/a/../b/./c", "https://example.org/b/c"),
        ("https://example.org/?b=2&a=1", "https://example.org?a=1&b=2"),
        ("https://example.org/a?", "https://example.org/a"),
        ("https://example.org/%7euser/%e3%81%82", "https://example.org/~user/%E3%81%82"),
        ("https://example.org/あ", "https://example.org/%E3%81%82"),
        ("https://münchen.example/a", "https://xn--mnchen-3ya.example/a"),
        ("https://example.org/a?q=x+y", "https://example.org/a?q=x%20y"),
        ("https://www.example/a", "https://www.example/a"),
        ("https://www.www.example.org/a", "https://www.www.example.org/a"),
    ],
)
def test_the_normal_form(raw, normal):
    assert normalise_url(raw) == normal


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "no address",
        "mailto:desk@example.org",
        "ftp://example.org/a",
        "javascript:alert(1)",
        "urn:uuid:9d6c9f3a-0000-0000-0000-000000000000",
        "https://",
        "https://exa mple.org/a",
        "/a/relative/path",
        "https://example.org:99999/a",
        "\udcff",
    ],
)
def test_what_is_no_web_address_has_no_normal_form(raw):
    assert normalise_url(raw) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://example.org/story?id=1", "https://example.org/story?id=2"),
        ("https://example.org/?p=1", "https://example.org/?p=2"),
        ("https://example.org/a", "https://example.org/A"),
        ("https://example.org/a", "https://m.example.org/a"),
        ("https://example.org/a?page=1", "https://example.org/a?page=2"),
        ("https://example.org/a%2Fb", "https://example.org/a/b"),
        ("https://example.org/a?x=1%262", "https://example.org/a?x=1&2"),
        ("https://example.org/a?x=1%2B2", "https://example.org/a?x=1+2"),
        ("https://example.org:8080/a", "https://example.org:8081/a"),
        ("https://example.org/a?source=wire", "https://example.org/a?source=own"),
    ],
)
def test_addresses_of_two_articles_stay_apart(one, other):
    assert not same(one, other)


def test_every_listed_tracking_parameter_is_dropped_in_any_case():
    for name in (*TRACKING_PARAMETERS, *(f"{prefix}x" for prefix in TRACKING_PREFIXES)):
        assert same(f"https://example.org/a?{name.upper()}=7&id=1", "https://example.org/a?id=1")


def test_no_listed_parameter_is_one_that_names_articles_somewhere():
    common = {"id", "p", "page_id", "article", "articleid", "aid", "nid", "story", "guid", "v", "s"}
    common |= {"oid", "cid", "sid", "uid", "no", "idx", "newsid", "ref", "from", "q", "docid"}
    assert not common & TRACKING_PARAMETERS
    assert not [name for name in common if name.startswith(TRACKING_PREFIXES)]


def test_a_tracking_name_is_dropped_however_its_escapes_are_spelt():
    assert same("https://example.org/a?utm%5Fsource=x", "https://example.org/a")


def test_a_tracking_parameter_that_names_articles_on_a_site_is_kept_there():
    one, other = "https://example.org/?spm=1", "https://example.org/?spm=2"
    assert same(one, other)
    assert not same(one, other, "spm")


@pytest.mark.parametrize(
    "awkward",
    [
        "http://./news/1",
        "https://example.org../a",
        "https://example.org/%%32%65%%32%65/a",
        "https://example.org/a?x=%%34%31",
    ],
)
def test_normalising_twice_changes_nothing_even_here(awkward):
    once = normalise_url(awkward)
    assert once is None or normalise_url(once) == once


@pytest.mark.parametrize(
    ("normalised", "names"),
    [
        ("https://example.org", False),
        ("https://example.org?p=12", True),
        ("https://example.org/a", True),
    ],
)
def test_a_front_page_names_no_article(normalised, names):
    assert names_an_article(normalised) is names
    assert normalise_url(normalised) == normalised


def web_platform_inputs(data) -> list[str]:
    """Inputs of the web platform's URL tests that stand alone."""
    found = []
    for name in ("wpt_urltestdata.json", "wpt_ada_extra_urltestdata.json"):
        cases = json.loads((data / "urls" / name).read_text(encoding="utf-8"))
        found += [case["input"] for case in cases if isinstance(case, dict)]
    hosts = json.loads((data / "urls" / "wpt_toascii.json").read_text(encoding="utf-8"))
    return found + [f"https://{case['input']}/x" for case in hosts if isinstance(case, dict)]


def test_the_web_platforms_addresses_never_raise(data):
    inputs = web_platform_inputs(data)
    assert len(inputs) > 800
    results = [normalise_url(raw) for raw in inputs]
    assert all(result is None or result.startswith("https://") for result in results)
    assert sum(result is not None for result in results) > 250


def test_the_web_platforms_addresses_have_one_normal_form(data):
    changed = {
        raw: (once, normalise_url(once))
        for raw in web_platform_inputs(data)
        if (once := normalise_url(raw)) and normalise_url(once) != once
    }
    assert changed == {}


def test_addresses_that_the_web_platform_holds_equal_are_equal(data):
    cases = json.loads((data / "urls" / "wpt_urltestdata.json").read_text(encoding="utf-8"))
    compared = 0
    for case in cases:
        if isinstance(case, dict) and case.get("base") in {None, "about:blank"} and "href" in case:
            once = normalise_url(case["input"])
            assert once == normalise_url(case["href"])
            compared += once is not None
    assert compared > 80
