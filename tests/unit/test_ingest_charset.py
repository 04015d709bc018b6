"""Encodings: what is declared, what is true, and what cannot be told."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

from clustering.ingest.charset import canonical, declared_in_prolog, settle_encoding, shown
from clustering.ingest.trouble import Refused

RUSSIAN = (
    "Центральный банк сохранил ключевую ставку. Совет директоров принял решение единогласно, "
    "сообщила пресс-служба регулятора в пятницу после заседания в Москве."
)
JAPANESE = (
    "台風十五号が九州に接近し、気象庁は大雨への警戒を呼びかけています。カトリーナ以来の規模です。"
)
CHINESE = "中央氣象局今天發布颱風警報，提醒民眾注意防範，學校和機關停止上班上課。"
KOREAN = "기상청은 태풍이 남해안에 접근함에 따라 주민들에게 대피를 권고했다고 밝혔다."
FRENCH = "La tempête a frappé la côte : « dégâts élevés », écrit l’agence à Nîmes."


def document(text: str, encoding: str, declared: str | None) -> bytes:
    prolog = f'<?xml version="1.0" encoding="{declared}"?>\n' if declared else ""
    return f"{prolog}<rss><channel><title>{text}</title></channel></rss>".encode(encoding)


@pytest.mark.parametrize(
    ("text", "encoding", "name"),
    [
        (RUSSIAN, "windows-1251", "windows-1251"),
        (RUSSIAN, "koi8-r", "koi8-r"),
        (RUSSIAN, "iso8859-5", "iso8859-5"),
        (JAPANESE, "shift_jis", "shift_jis"),
        (JAPANESE, "euc_jp", "euc-jp"),
        (JAPANESE, "iso2022_jp", "iso-2022-jp"),
        (CHINESE, "big5", "big5"),
        (KOREAN, "euc_kr", "euc-kr"),
        (FRENCH, "windows-1252", "windows-1252"),
        (FRENCH, "utf-8", "utf-8"),
    ],
)
def test_a_true_declaration_is_believed(text, encoding, name):
    reading = settle_encoding(document(text, encoding, encoding))
    assert f"<title>{text}</title>" in reading.text
    assert (reading.used, reading.complaint) == (name, None)


@pytest.mark.parametrize(
    ("text", "encoding", "declared", "name"),
    [
        (RUSSIAN, "koi8-r", "utf-8", "koi8-r"),
        (RUSSIAN, "koi8-r", "windows-1251", "koi8-r"),
        (RUSSIAN, "windows-1251", "koi8-r", "windows-1251"),
        (RUSSIAN, "windows-1251", "utf-8", "windows-1251"),
        (RUSSIAN, "windows-1251", "iso-8859-1", "windows-1251"),
        (RUSSIAN, "utf-8", "windows-1251", "utf-8"),
        (JAPANESE, "shift_jis", "utf-8", "shift_jis"),
        (JAPANESE, "euc_jp", "shift_jis", "euc-jp"),
        (CHINESE, "big5", "utf-8", "big5"),
        (KOREAN, "euc_kr", "utf-8", "euc-kr"),
        (KOREAN, "euc_kr", "iso-8859-1", "euc-kr"),
        (FRENCH, "windows-1252", "utf-8", "windows-1252"),
        (FRENCH, "utf-8", "iso-8859-1", "utf-8"),
        (RUSSIAN, "koi8-r", "no-such-thing", "koi8-r"),
    ],
)
def test_a_false_declaration_is_named_and_mended(text, encoding, declared, name):
    reading = settle_encoding(document(text, encoding, declared))
    assert f"<title>{text}</title>" in reading.text
    assert reading.used == name
    assert reading.complaint == f"declared {declared}, but the bytes are {name}; read as {name}"


def test_no_declaration_means_utf_8():
    assert settle_encoding(document(RUSSIAN, "utf-8", None)).complaint is None
    complaint = settle_encoding(document(RUSSIAN, "koi8-r", None)).complaint
    assert complaint == ("no encoding declared, so utf-8, but the bytes are koi8-r; read as koi8-r")


def test_the_charset_of_http_is_heard_as_well():
    data = document(RUSSIAN, "windows-1251", None)
    assert settle_encoding(data, "windows-1251").complaint is None
    complaint = settle_encoding(document(RUSSIAN, "koi8-r", "utf-8"), "iso-8859-1").complaint
    assert complaint.startswith("declared iso-8859-1 and utf-8, but the bytes are koi8-r")
    # a proxy adds a charset, the prolog is right
    assert settle_encoding(document(RUSSIAN, "koi8-r", "koi8-r"), "utf-8").complaint is None


def test_what_is_ascii_is_whatever_it_says():
    for declared in ("utf-8", "koi8-r", "no-such-thing", "shift_jis"):
        reading = settle_encoding(document("plain words", "ascii", declared))
        assert (reading.complaint, "plain words" in reading.text) == (None, True)


@pytest.mark.parametrize(
    "encoding",
    ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"],
)
def test_wide_encodings_and_byte_order_marks(encoding):
    data = document(RUSSIAN, encoding, encoding.removesuffix("-sig"))
    reading = settle_encoding(data)
    assert reading.text.startswith("<?xml")
    assert RUSSIAN in reading.text
    assert reading.complaint is None


def test_bytes_that_are_no_text_are_refused():
    noise = bytes(range(0x80, 0x100)) * 20
    with pytest.raises(Refused, match="no other encoding can be told") as refused:
        settle_encoding(b'<?xml version="1.0" encoding="utf-8"?><rss>' + noise)
    assert refused.value.reason.startswith("declared utf-8, but the bytes are not")


def test_a_headline_cut_inside_a_character_costs_that_character():
    reading = settle_encoding((RUSSIAN.encode()[:-2] + b"</title>") + b" ")
    assert reading.used == "utf-8"
    assert reading.text.startswith(RUSSIAN[:-2])
    assert reading.complaint == "1 characters are no utf-8 and were replaced by U+FFFD"


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("UTF-8", "utf_8"),
        (' "latin1" ', "cp1252"),
        ("ISO-8859-1", "cp1252"),
        ("us-ascii", "cp1252"),
        ("Shift_JIS", "cp932"),
        ("gb2312", "gb18030"),
        ("big5", "big5hkscs"),
        ("euc-kr", "cp949"),
        ("rot13", None),
        ("base64", None),
        ("nothing", None),
        ("a\0b", None),
    ],
)
def test_labels_are_read_as_browsers_do(label, codec):
    assert canonical(label) == codec


def test_names_are_shown_as_publishers_write_them():
    assert [shown(codec) for codec in ("utf_8_sig", "cp1251", "cp932", "koi8_r")] == [
        "utf-8",
        "windows-1251",
        "shift_jis",
        "koi8-r",
    ]


def test_the_prolog_is_found_only_at_the_start():
    assert declared_in_prolog(b"  <?xml version='1.0' encoding='KOI8-R'?>") == "KOI8-R"
    assert declared_in_prolog(b"\xef\xbb\xbf<?xml version='1.0' encoding=\"x\"?>") == "x"
    assert declared_in_prolog("<?xml version='1.0' encoding='utf-16'?>".encode("utf-16-le")) == (
        "utf-16"
    )
    assert declared_in_prolog(b"<rss><?xml encoding='koi8-r'?>") is None
    assert declared_in_prolog(b"<?xml version='1.0'?>") is None


@pytest.fixture(scope="module")
def news(data):
    """Two feeds of five texts of about 400 characters each, by language."""
    texts = defaultdict(list)
    with (data / "ntrex.jsonl").open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            if len(texts[row["language"]]) < 10:
                texts[row["language"]].append(f"{row['title']}\n{row['body'][:400]}")
    return {
        language: ["\n".join(listed[:5]), "\n".join(listed[5:])]
        for language, listed in texts.items()
    }


@pytest.mark.parametrize(
    ("language", "encodings"),
    [
        ("ru", ["koi8-r", "cp1251", "iso8859-5"]),
        ("uk", ["cp1251", "koi8-u"]),
        ("bg", ["cp1251"]),
        ("pl", ["cp1250", "iso8859-2"]),
        ("hu", ["cp1250"]),
        ("el", ["cp1253", "iso8859-7"]),
        ("he", ["cp1255"]),
        ("ar", ["cp1256"]),
        ("th", ["cp874"]),
        ("ja", ["shift_jis", "euc_jp"]),
        ("zh-Hans", ["gb18030"]),
        ("zh-Hant", ["big5hkscs"]),
        ("ko", ["euc_kr"]),
        ("de", ["cp1252"]),
        ("fr", ["cp1252"]),
    ],
)
def test_real_news_under_a_false_prolog_reads_right(news, language, encodings):
    """Each feed in each encoding, declared as utf-8 and as another one of the same region."""
    for encoding in encodings:
        for text in news[language]:
            body = f"<rss><title>{text}</title></rss>".encode(encoding, "ignore")
            for declared in ("utf-8", encodings[0]):
                data = f'<?xml version="1.0" encoding="{declared}"?>'.encode() + body
                assert settle_encoding(data).text.endswith(body.decode(encoding)), declared
