from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustering.dedup.urls import normalise_url, tracking_list

TRACKING_PARAMETERS, TRACKING_PREFIXES = tracking_list()

LABEL = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)
HOST = st.builds(lambda *labels: ".".join(labels), LABEL, LABEL, st.sampled_from(["org", "co.jp"]))
SEGMENT = st.text(min_size=1, max_size=8).map(lambda text: quote(text.encode("utf-8", "ignore")))
PATH = st.lists(SEGMENT, max_size=4).map("/".join)
NAME = LABEL.filter(
    lambda name: name not in TRACKING_PARAMETERS and not name.startswith(TRACKING_PREFIXES)
)
VALUE = st.text(max_size=8).map(lambda text: quote(text.encode("utf-8", "ignore"), safe=""))
PARAMETERS = st.dictionaries(NAME, VALUE, max_size=4).map(lambda found: list(found.items()))
TRACKING = st.lists(
    st.tuples(
        st.one_of(
            st.sampled_from(sorted(TRACKING_PARAMETERS)),
            st.builds(str.__add__, st.sampled_from(TRACKING_PREFIXES), LABEL),
        ),
        VALUE,
    ),
    max_size=3,
)


def address(host, path, parameters, *, scheme="https", port="", fragment=""):
    query = "&".join(f"{name}={value}" for name, value in parameters)
    return f"{scheme}://{host}{port}/{path}" + (f"?{query}" if query else "") + fragment


@given(st.text())
def test_any_text_is_taken(raw):
    result = normalise_url(raw)
    assert result is None or result.startswith("https://")


@given(HOST, st.text(alphabet="ab%2eE5fF./?&=+ #:@www~", max_size=20))
def test_normalising_twice_changes_nothing(host, rest):
    once = normalise_url(f"https://{host}/{rest}")
    assert once is not None
    assert normalise_url(once) == once


@given(HOST, PATH, PARAMETERS, TRACKING, st.randoms(use_true_random=False))
def test_what_does_not_name_the_article_does_not_matter(host, path, parameters, tracking, random):
    fragment = quote(random.choice(["", "top", "/a?b=c"]))
    plain = normalise_url(address(host, path, parameters))
    shuffled = [*parameters, *tracking]
    random.shuffle(shuffled)
    scheme, port = random.choice([("HTTP", ""), ("http", ":80"), ("https", ":443")])
    dressed = address(
        "www." + "".join(random.choice((c, c.upper())) for c in host),
        path,
        shuffled,
        scheme=scheme,
        port=port,
        fragment=f"#{fragment}",
    )
    assert normalise_url(dressed) == plain


@given(HOST, PATH, PARAMETERS, NAME, st.tuples(VALUE, VALUE))
def test_ids_in_the_query_never_collapse(host, path, parameters, name, values):
    one, other = values
    rest = [pair for pair in parameters if pair[0] != name]
    first = normalise_url(address(host, path, [*rest, (name, one)]))
    second = normalise_url(address(host, path, [(name, other), *rest]))
    assert (first == second) == (one == other)


@given(HOST, PATH, TRACKING.filter(bool), VALUE)
def test_identity_parameters_are_never_dropped(host, path, tracking, value):
    name = tracking[0][0]
    kept = normalise_url(address(host, path, [(name, value)]), frozenset({name}))
    assert kept is not None
    assert kept.endswith(f"?{name}={value}")


@given(HOST, PATH, PATH)
def test_paths_that_differ_stay_apart(host, one, other):
    first, second = (normalise_url(address(host, path, [])) for path in (one, other))
    if one.rstrip("/") == other.rstrip("/"):
        assert first == second
    elif "." not in one + other:  # a segment of dots is resolved away
        assert first != second


@pytest.mark.parametrize("escape", ["%41", "%7e", "%2D"])
def test_an_unreserved_character_has_one_spelling(escape):
    bare = bytes.fromhex(escape[1:]).decode()
    assert normalise_url(f"https://a.org/{escape}") == normalise_url(f"https://a.org/{bare}")
