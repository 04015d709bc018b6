"""Which entry of a table of languages a tag means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustering.embedding.tags import nearest_language

TABLE = [
    "ar", "cs", "de", "en", "es", "fa", "fil", "he", "hr", "id", "is", "ms", "nb", "pt", "pt-BR",
    "ro", "ru", "sr", "sw", "uz", "yue", "zh-Hans", "zh-Hant",
]  # fmt: skip


@pytest.mark.parametrize(
    ("tag", "entry"),
    [
        ("en", "en"),
        ("EN", "en"),
        (" en ", "en"),
        ("en-US", "en"),
        ("en_GB", "en"),
        ("de-Latn-AT", "de"),
        ("es-419", "es"),
        ("pt", "pt"),
        ("pt-PT", "pt"),
        ("pt_br", "pt-BR"),
        ("zh", "zh-Hans"),
        ("zh-CN", "zh-Hans"),
        ("zh-cn", "zh-Hans"),
        ("zh-SG", "zh-Hans"),
        ("zh-TW", "zh-Hant"),
        ("zh_HK", "zh-Hant"),
        ("zh-Hant-HK", "zh-Hant"),
        ("zh-Hans-SG", "zh-Hans"),
        ("cmn-Hant", "zh-Hant"),
        ("cmn", "zh-Hans"),
        ("zh-yue", "yue"),
        ("yue-HK", "yue"),
        ("no", "nb"),
        ("nn", "nb"),
        ("nn-NO", "nb"),
        ("iw", "he"),
        ("iw-IL", "he"),
        ("in", "id"),
        ("in-ID", "id"),
        ("tl", "fil"),
        ("tl-PH", "fil"),
        ("mo", "ro"),
        ("sh", "hr"),
        ("sr-Cyrl", "sr"),
        ("sr-RS", "sr"),
        ("sr-Latn", "hr"),
        ("sr-Latn-RS", "hr"),
        ("prs-AF", "fa"),
        ("zsm", "ms"),
        ("uzn", "uz"),
        ("fo", "is"),
    ],
)
def test_a_tag_finds_its_entry(tag, entry):
    assert nearest_language(tag, TABLE) == entry


@pytest.mark.parametrize("tag", ["und", "", " ", "xx", "mul", "zxx", "eng", "x-default", "-", "e"])
def test_a_tag_without_an_entry_finds_none(tag):
    assert nearest_language(tag, TABLE) is None


@pytest.mark.parametrize(
    ("tag", "table", "entry"),
    [
        ("pt", ["pt-BR", "pt-AO"], "pt-AO"),
        ("pt-PT", ["pt-BR"], "pt-BR"),
        ("zh", ["zh-Hant"], "zh-Hant"),
        ("zh-TW", ["zh-Hans"], "zh-Hans"),
        ("zh-CN", ["zh"], "zh"),
        ("zh-TW", ["zh-TW", "zh-Hant"], "zh-TW"),
        ("sr-Latn", ["sr"], "sr"),
        ("sr", ["sr-Latn"], "sr-Latn"),
        ("nb", ["no"], "no"),
        ("fil", ["tl"], "tl"),
        ("EN-us", ["En"], "En"),
        ("en", [], None),
    ],
)
def test_a_poorer_table_serves_with_what_it_has(tag, table, entry):
    assert nearest_language(tag, table) == entry


@given(st.sampled_from(TABLE), st.sampled_from(["", "-XX", "-419", "-x-private", "_ZZ"]))
def test_an_entry_with_any_region_finds_itself(entry, suffix):
    assert nearest_language(entry + suffix, TABLE) == entry


@given(st.text(max_size=12))
def test_any_text_finds_an_entry_or_none(tag):
    assert nearest_language(tag, TABLE) in {*TABLE, None}


@given(st.sampled_from(["en-US", "pt", "zh-TW", "sr", "und"]), st.permutations(TABLE))
def test_the_order_of_the_table_does_not_matter(tag, table):
    assert nearest_language(tag, table) == nearest_language(tag, TABLE)
