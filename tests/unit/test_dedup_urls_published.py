"""The tracking list as data, and our normal form beside what courlan's own tests ask of theirs."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from clustering.dedup.keys import address_keys, keys_of, url_hash
from clustering.dedup.urls import normalise_url, tracking_list
from clustering.records import Article

# Where courlan's tests ask for something else: it drops parameters by parts of their names (`source`,
# `affiliate`, `clickid`), and in its strict mode all but a list of known ones. Both can name an article.
# It also takes two slashes in a path for one.
OTHERWISE = {
    "https://hanxiao.io//404.html",
    "http://test.org/?s_cid=123&clickid=1",
    "http://test.org/?aftr_source=0",
    "http://test.org/?fb_ref=0",
    "http://test.org/?this_affiliate=0",
    "http://test.net/foo.html?testid=1",
    "http://test.net/foo.html?testid=1&post=abc&page=2",
}


def test_what_courlan_normalises_to_one_form_has_one_here(data):
    lines = (data / "urls" / "courlan_cases.jsonl").read_text("utf-8").splitlines()
    cases = [case for line in lines if (case := json.loads(line))["function"] == "normalize_url"]
    assert len(cases) == 31
    other = {
        case["args"][0]
        for case in cases
        if normalise_url(case["args"][0]) != normalise_url(case["expected"])
    }
    assert other == OTHERWISE


def lines() -> list[str]:
    text = (files("clustering.dedup") / "tracking.txt").read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_the_tracking_list_is_one_lower_case_name_a_line_and_each_once():
    assert len(lines()) > 50
    assert len(set(lines())) == len(lines())
    for line in lines():
        assert line == line.strip().lower()
        assert "*" not in line[:-1]
        assert not set(line) & set(" =&#?")


def test_every_line_of_the_tracking_list_is_in_force():
    tracking = tracking_list()
    assert len(tracking.names) + len(tracking.prefixes) == len(lines())
    assert {f"{prefix}*" for prefix in tracking.prefixes} == {n for n in lines() if n.endswith("*")}


@pytest.mark.parametrize("line", ["utm_*", "fbclid", "xtor"])
def test_a_name_of_the_list_is_dropped(line):
    name = line.replace("*", "anything")
    assert normalise_url(f"https://a.org/1?{name}=x&id=1") == "https://a.org/1?id=1"


@pytest.mark.parametrize("url", [None, "", "mailto:a@b.org", "https://a.org/", "https://a.org"])
def test_what_names_no_article_has_no_hash(url):
    assert url_hash(url) is None


def test_the_hash_of_an_address_is_that_of_its_normal_form():
    one = url_hash("https://a.org/1")
    assert one == url_hash("http://WWW.a.org/1/?utm_source=x#top")
    assert one != url_hash("https://a.org/2")
    assert url_hash("https://a.org/1?spm=2") == one
    assert url_hash("https://a.org/1?spm=2", frozenset({"spm"})) != one


def test_a_live_article_has_no_key_but_its_entry_and_its_address():
    whole = keys_of(Article("A title of several words", url="https://a.org/1", body="word " * 200))
    bare = address_keys(whole)
    assert whole.content_hash is not None
    assert (bare.entry_hash, bare.url_hash) == (whole.entry_hash, whole.url_hash)
    assert bare.content_hash is None
    assert bare.simhash is None
    assert set(bare.bands) == {None}
    assert bare.title_sketch == ()
