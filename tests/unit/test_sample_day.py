"""The sample day says of itself, by counting, everything that its README promises."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter, defaultdict
from datetime import UTC, datetime
from importlib.resources import files
from itertools import pairwise
from urllib.parse import parse_qsl, urlsplit

import pytest

KEYS = ("id", "source", "url", "title", "body", "author", "published_at", "language", "story")
SCRIPT_OF = {
    "ar": "ARABIC",
    "bn": "BENGALI",
    "el": "GREEK",
    "fa": "ARABIC",
    "he": "HEBREW",
    "hi": "DEVANAGARI",
    "ko": "HANGUL",
    "ru": "CYRILLIC",
    "th": "THAI",
    "uk": "CYRILLIC",
    "zh-Hans": "CJK",
}
DETECTOR_TAG = {"pt-BR": "pt", "zh-Hans": "zh-cn"}
LOOK_ALIKES = (
    ("brisal-montejar-cup", "nordhafen-lesk-quarterfinal"),
    ("karsova-earthquake", "almyra-earthquake"),
    ("karvelia-rate-cut", "naharra-rate-hold"),
)
STUB = "Subscribe to read the rest of this article."
RESERVED = re.compile(r"(^|\.)(example|example\.(com|net|org))$")


def text_of(row):
    return f"{row['title']} {row.get('body', '')}"


def time_of(row):
    return datetime.strptime(row["published_at"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def scripts_of(text):
    """Count letters by script; half-width forms count as what they stand for."""
    names = (unicodedata.name(c) for c in unicodedata.normalize("NFKC", text) if c.isalpha())
    return Counter(re.split("[ -]", name)[0] for name in names)


def bare(url):
    """Reduce an address to what identifies the article, the slow and obvious way."""
    parts = urlsplit(url)
    query = [
        pair
        for pair in parse_qsl(parts.query)
        if not pair[0].startswith("utm_") and pair[0] != "fbclid"
    ]
    return parts.netloc.lower().removeprefix("www."), parts.path.rstrip("/"), tuple(sorted(query))


@pytest.fixture(scope="module")
def raw():
    return files("clustering.sample").joinpath("sample_day.jsonl").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def rows(raw):
    return [json.loads(line) for line in raw.splitlines()]


@pytest.fixture(scope="module")
def stories(rows):
    groups = defaultdict(list)
    for row in rows:
        if row["story"] is not None:
            groups[row["story"]].append(row)
    return dict(groups)


def groups_by(rows, key):
    groups = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return list(groups.values())


# --- form ---------------------------------------------------------------------------------


def test_file_is_plain_utf8_json_lines(raw):
    assert raw.endswith("}\n")
    assert "\\u" not in raw
    assert "\r" not in raw
    assert "\ufeff" not in raw
    assert "\ufffd" not in raw
    assert "" not in raw.splitlines()


def test_lines_are_split_the_same_by_every_reader(raw):
    # U+2028, U+0085 and the like end a line for str.splitlines but not for a file object.
    assert raw.splitlines() == raw.removesuffix("\n").split("\n")


def test_keys_come_in_the_promised_order(rows):
    for row in rows:
        assert list(row) == [key for key in KEYS if key in row]
        assert {"id", "source", "url", "title", "published_at", "story"} <= set(row)


def test_every_value_is_a_trimmed_string(rows):
    for row in rows:
        for key, value in row.items():
            if value is None:
                assert key in {"published_at", "story"}
            else:
                assert isinstance(value, str)
                assert value
                assert value == value.strip()


def test_addresses_use_reserved_names(rows):
    for row in rows:
        parts = urlsplit(row["url"])
        assert parts.scheme == "https"
        assert RESERVED.search(parts.netloc), row["url"]


def test_every_address_in_the_text_is_reserved_too(raw):
    hosts = re.findall(r"https?://([^/\"\\\s]+)", raw)
    assert hosts
    assert [host for host in hosts if not RESERVED.search(host)] == []


def test_language_tags_are_bcp_47(rows):
    tags = {row["language"] for row in rows if "language" in row}
    assert all(re.fullmatch(r"[a-z]{2}(-[A-Z][a-z]{3})?(-[A-Z]{2})?", tag) for tag in tags)


def test_labels_are_kebab_case(stories):
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)+", label) for label in stories)


def test_rows_are_in_order_of_time(rows):
    times = [time_of(row) for row in rows if row["published_at"]]
    assert times == sorted(times)


def test_times_look_like_a_newsroom_day(rows):
    times = [time_of(row) for row in rows if row["published_at"]]
    assert {time.date().isoformat() for time in times} == {"2026-03-09", "2026-03-10", "2026-03-11"}
    assert sum(time.day == 10 for time in times) > 0.9 * len(times)
    assert len({time.hour for time in times if time.day == 10}) == 24
    assert sum(time.minute == 0 for time in times) <= 5
    assert len({time.second for time in times}) > 30


def test_ids_occur_once_but_for_the_live_blog(rows):
    repeated = [group for group in groups_by(rows, lambda row: row["id"]) if len(group) > 1]
    assert len(repeated) == 1
    assert all("/live/" in row["url"] for row in repeated[0])


# --- breadth ------------------------------------------------------------------------------


def test_articles_languages_and_scripts_are_many(rows):
    assert len(rows) >= 110
    assert len({row["language"] for row in rows if "language" in row}) >= 16
    scripts = Counter()
    for row in rows:
        scripts.update(scripts_of(text_of(row)))
    assert len([script for script, letters in scripts.items() if letters >= 200]) >= 7


@pytest.mark.parametrize(("language", "script"), SCRIPT_OF.items())
def test_text_is_in_the_script_of_its_language(rows, language, script):
    mine = [row for row in rows if row.get("language") == language]
    assert mine
    for row in mine:
        counts = scripts_of(text_of(row))
        assert counts[script] > 0.9 * counts.total(), row["title"]


def test_japanese_has_kana_and_chinese_has_none(rows):
    for row in rows:
        counts = scripts_of(text_of(row))
        kana = counts["HIRAGANA"] + counts["KATAKANA"]
        assert (kana > 0) == (row.get("language") == "ja"), row["title"]
        if kana:
            assert kana + counts["CJK"] == counts.total()


def test_latin_languages_are_in_latin(rows):
    others = [
        row
        for row in rows
        if row.get("language", "vi") not in SCRIPT_OF and row.get("language") != "ja"
    ]
    assert len(others) > 80
    for row in others:
        assert set(scripts_of(text_of(row))) <= {"LATIN", "MASCULINE", "FEMININE"}, row["title"]


def test_text_is_in_the_language_it_states(rows, monkeypatch):
    from langdetect import DetectorFactory, detect

    monkeypatch.setattr(DetectorFactory, "seed", 0)
    for row in rows:
        if "language" in row:
            stated = DETECTOR_TAG.get(row["language"], row["language"])
            assert detect(text_of(row)) == stated, row["title"]


def test_events_are_many_and_of_varied_sizes(stories):
    sizes = [len(members) for members in stories.values()]
    assert len(stories) >= 20
    assert min(sizes) == 2
    assert max(sizes) == 14
    assert len(set(sizes)) >= 6


def test_most_events_cross_languages(stories):
    spans = [len({row.get("language") for row in members}) for members in stories.values()]
    assert min(spans) >= 2
    assert max(spans) <= 8
    assert sum(span >= 3 for span in spans) > 0.8 * len(spans)


def test_noise_is_there(rows):
    noise = [row for row in rows if row["story"] is None]
    assert len(noise) >= 8
    assert len({row.get("language") for row in noise}) >= 8


def test_bodies_have_the_length_of_ledes(rows):
    spaced = [row for row in rows if row.get("language") not in {"ja", "ko", "zh-Hans"}]
    lengths = [len(row.get("body", "")) for row in spaced]
    assert sum(150 <= length <= 700 for length in lengths) > 0.9 * len(lengths)
    assert max(lengths) < 1200


def test_sources_are_names_and_addresses(rows):
    sources = {row["source"] for row in rows}
    addresses = {source for source in sources if source.startswith("https://")}
    assert len(addresses) >= 4
    assert len(sources - addresses) >= 20


def test_one_host_belongs_to_one_source(rows):
    hosts = defaultdict(set)
    for row in rows:
        hosts[urlsplit(row["url"]).netloc.removeprefix("www.")].add(row["source"])
    assert all(len(sources) == 1 for sources in hosts.values())


# --- look-alikes and long stories ---------------------------------------------------------


@pytest.mark.parametrize(("one", "other"), LOOK_ALIKES)
def test_look_alikes_happen_at_the_same_time(stories, one, other):
    spans = []
    for label in (one, other):
        times = [time_of(row) for row in stories[label]]
        spans.append((min(times), max(times)))
        assert len(stories[label]) >= 4
    assert max(start for start, _ in spans) <= min(end for _, end in spans)


def test_look_alikes_state_their_own_figures(stories):
    figures = {
        "karsova-earthquake": ("6.4", "5.1"),
        "almyra-earthquake": ("5.1", "6.4"),
        "karvelia-rate-cut": ("5.75", "4.25"),
        "naharra-rate-hold": ("4.25", "5.75"),
    }
    for label, (own, foreign) in figures.items():
        texts = [
            unicodedata.normalize("NFKC", text_of(row)).replace(",", ".").replace("٫", ".")
            for row in stories[label]
        ]
        plain = [text.translate(str.maketrans("۰۱۲۳۴۵۶۷۸۹", "0123456789")) for text in texts]
        assert sum(own in text for text in plain) > len(plain) / 2
        assert not any(foreign in text for text in plain)


def test_one_story_runs_over_three_days(stories):
    long = [
        members
        for members in stories.values()
        if len({time_of(row).date() for row in members}) >= 3
    ]
    assert len(long) == 1
    assert len(long[0]) >= 9
    assert len({row["language"] for row in long[0]}) >= 4
    times = [time_of(row) for row in long[0]]
    gaps_hours = [(b - a).total_seconds() / 3600 for a, b in pairwise(times)]
    assert max(gaps_hours) < 18


# --- duplicates ---------------------------------------------------------------------------


def test_a_wire_text_stands_in_four_sources(rows):
    def core(row):
        return row.get("body", "").removesuffix(" — North Wire")

    copies = max(groups_by([r for r in rows if len(core(r)) > 500], core), key=len)
    assert len(copies) == 4
    assert len({row["source"] for row in copies}) == 4
    assert len({row["url"] for row in copies}) == 4
    assert len({row["story"] for row in copies}) == 1
    assert sorted(Counter(row["title"] for row in copies).values()) == [1, 3]
    assert sum(row["body"].endswith("— North Wire") for row in copies) == 1


@pytest.mark.parametrize("language", ["ja", "bn"])
def test_a_copy_differs_by_compatibility_characters_only(rows, language):
    mine = [row for row in rows if row.get("language") == language]
    pairs = [
        pair
        for pair in groups_by(mine, lambda row: unicodedata.normalize("NFKC", row["body"]))
        if len(pair) > 1
    ]
    assert len(pairs) == 1
    first, copy = pairs[0]
    assert len(unicodedata.normalize("NFKC", first["body"])) > 400
    assert first["body"] != copy["body"]
    assert first["title"] != copy["title"]
    assert first["source"] != copy["source"]
    assert first["story"] == copy["story"] is not None


def test_a_guid_is_issued_again(rows):
    def same(row):
        return tuple(row.get(key) for key in ("source", "title", "body", "url"))

    pairs = [group for group in groups_by(rows, same) if len(group) > 1]
    assert len(pairs) == 1
    first, again = pairs[0]
    assert first["id"] != again["id"]
    assert time_of(first) < time_of(again)


def test_addresses_recur_with_tracking_parameters(rows):
    twins = [
        group
        for group in groups_by(rows, lambda row: bare(row["url"]))
        if len({row["url"] for row in group}) > 1
    ]
    assert len(twins) == 3
    seen = " ".join(row["url"] for group in twins for row in group)
    assert all(part in seen for part in ("utm_source=", "fbclid=", "#", "://www."))
    for first, second in twins:
        assert first["id"] != second["id"]
        assert first["source"] == second["source"]
        assert first["story"] == second["story"] is not None
        assert first["body"] != second["body"]
    orders = [[[k for k, _ in parse_qsl(urlsplit(r["url"]).query)] for r in g] for g in twins]
    assert any(a and a != [k for k in b if k in a] for a, b in orders)


def test_the_live_blog_grows(rows):
    versions = [row for row in rows if "/live/" in row["url"]]
    assert len(versions) == 3
    assert len({(row["id"], row["url"], row["source"], row["story"]) for row in versions}) == 1
    for earlier, later in pairwise(versions):
        assert time_of(earlier) < time_of(later)
        assert later["body"].endswith(earlier["body"])
        assert len(later["body"]) > len(earlier["body"]) + 100
        assert later["title"] != earlier["title"]


def test_paywall_stubs_are_of_different_events(rows):
    stubs = [row for row in rows if row.get("body") == STUB]
    assert len(stubs) == 2
    assert len({row["source"] for row in stubs}) == 1
    assert len({row["story"] for row in stubs} - {None}) == 2
    assert len({row["url"] for row in stubs}) == 2


def test_a_site_names_its_articles_in_the_query_alone(rows):
    mine = [row for row in rows if re.search(r"/article\?id=\d+$", row["url"])]
    assert len(mine) >= 2
    assert len({urlsplit(row["url"])._replace(query="") for row in mine}) == 1
    assert len({row["url"] for row in mine}) == len({row["title"] for row in mine}) == len(mine)
    assert len({row["story"] for row in mine}) == len(mine)


def test_no_other_text_is_repeated(rows):
    # 3 wire copies, 2 character variants, 1 re-issue and 1 stub; twins and live blog differ.
    bodies = [
        unicodedata.normalize("NFKC", row["body"]).removesuffix(" — North Wire")
        for row in rows
        if "body" in row
    ]
    assert len(bodies) - len(set(bodies)) == 7


# --- awkwardness --------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["body", "language", "published_at"])
def test_one_article_lacks(rows, key):
    assert sum(row.get(key) is None for row in rows) == 1


def test_one_time_is_exactly_midnight(rows):
    midnight = [row for row in rows if (row["published_at"] or "").endswith("T00:00:00Z")]
    assert len(midnight) == 1
    assert midnight[0]["story"] is not None


def test_one_body_has_tags_and_character_references(rows):
    marked = [row for row in rows if re.search(r"</\w+>", row.get("body", ""))]
    assert len(marked) == 1
    assert re.search(r"&\w+;", marked[0]["body"])
    assert "&" not in "".join(text_of(row) for row in rows if row is not marked[0])


def test_some_articles_are_signed(rows):
    signed = sum("author" in row for row in rows)
    assert 0.2 * len(rows) < signed < 0.8 * len(rows)


# --- README -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def readme():
    return files("clustering.sample").joinpath("README.md").read_text(encoding="utf-8")


def test_readme_table_agrees_with_the_data(readme, stories):
    table = re.findall(
        r"^\| `([a-z-]+)` \| [^|]+ \| (\d+) \| ([\w, -]+) \| ([\d–]+) \|$", readme, re.MULTILINE
    )
    said = {label: (int(size), languages, days) for label, size, languages, days in table}
    true = {}
    for label, members in stories.items():
        days = sorted({f"{time_of(row).day:02d}" for row in members})
        languages = ", ".join(sorted({r["language"] for r in members if "language" in r}))
        true[label] = (len(members), languages, "–".join(dict.fromkeys((days[0], days[-1]))))
    assert said == true


def test_readme_totals_agree_with_the_data(readme, rows, stories):
    sources = len({row["source"] for row in rows})
    languages = len({row["language"] for row in rows if "language" in row})
    noise = sum(row["story"] is None for row in rows)
    plain = " ".join(readme.split())
    assert f"{sources} invented sources" in plain
    assert f"{len(rows)} articles in {languages} languages and 11 scripts" in plain
    assert f"{len(stories)} events and {noise} articles" in plain
    assert "MIT" in plain
