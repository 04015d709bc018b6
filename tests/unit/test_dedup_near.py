from __future__ import annotations

from datetime import UTC, datetime

import pytest

from clustering.dedup.keys import keys_of
from clustering.dedup.near import LEAST_OVERLAP, Body, exchanged, near_overlap, overlap
from clustering.dedup.shingles import Script, script_of, shingles
from clustering.dedup.sketches import NO_NEAR_KEYS, near_keys, sketch_overlap, title_sketch
from clustering.records import Article

START = datetime(2026, 3, 1, tzinfo=UTC)
WIRE = (
    "The river rose two metres overnight and the lower town of Brenn was cleared before dawn. "
    "Mayor Ada Holm said that nobody had been hurt. Engineers watched the dam through the night, and "
    "the army brought sandbags, boats and tents for those who could not stay with friends. Schools will "
    "be closed until Friday. The weather service expects more rain in the hills, though less than what "
    "fell on Monday, when a month of it came down within a few hours and the bridge had to be shut."
)
REPORT = (
    "{home} beat {away} {score} in front of a full house on Saturday to go third in the table. "
    "{scorer} put the hosts ahead after a quarter of an hour with a shot from the edge of the box, and the "
    "visitors never found a way back into the match although they had most of the ball. It was a deserved "
    "win against a side that has lost its last three away games, the coach said after the final whistle. "
    "{second} made sure of the points with a header shortly before the end. Both sides are back in action "
    "next weekend, when the leaders come to town and the gap at the top could be cut to a single point."
)
ARABIC = (
    "ارتفع منسوب النهر مترين خلال الليل وتم إخلاء البلدة السفلى قبل الفجر وقال رئيس البلدية إن أحدا لم يصب "
    "بأذى وراقب المهندسون السد طوال الليل وجلب الجيش أكياس الرمل والقوارب والخيام لمن لم يتمكنوا من البقاء مع "
    "الأصدقاء وستبقى المدارس مغلقة حتى الجمعة وتتوقع خدمة الأرصاد مزيدا من الأمطار في التلال وإن كانت أقل مما "
    "هطل يوم الاثنين حين هطلت أمطار شهر كامل في ساعات قليلة واضطرت السلطات إلى إغلاق الجسر أمام حركة المرور"
)
CHINESE = (
    "{home}队周六晚在主场坐满观众的情况下以{score}战胜来访的{away}队升至积分榜第三位。上半场第十五分钟{scorer}在禁区边缘"
    "起脚射门首开纪录客队虽然控球占优但始终没有找到扳平比分的办法。主教练赛后表示面对一支最近三个客场全部输球的对手"
    "这是一场应得的胜利。终场前不久{second}头球锁定胜局。两队下周末都将继续比赛届时榜首球队将来访积分差距可能缩小到一分。"
)
FIRST = {"home": "Rovers", "away": "City", "score": "2-1", "scorer": "Marek", "second": "Costa"}
OTHER = {"home": "Albion", "away": "Town", "score": "3-0", "scorer": "Lindqvist", "second": "Weiss"}


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("The river rose", Script.SPACED),
        ("Река поднялась", Script.SPACED),
        ("नदी का जलस्तर", Script.SPACED),
        ("川の水位は上昇", Script.DENSE),
        ("강의 수위가", Script.DENSE),
        ("แม่น้ำสูงขึ้น", Script.LONG),
        ("நதியின் நீர்மட்டம்", Script.LONG),
        ("河水上涨 reported by the news agency", Script.SPACED),
        ("河水上涨两米 AFP News", Script.DENSE),
        ("", Script.SPACED),
    ],
)
def test_scripts_say_how_a_text_is_cut(text, script):
    assert script_of(text) is script


def test_a_shingle_is_three_words_whatever_stands_between_them():
    assert len(shingles("one two three four")) == 2
    assert shingles("one, two - three!").tolist() == shingles("one two three").tolist()
    assert shingles("one two three").tolist() != shingles("three two one").tolist()


def test_texts_shorter_than_a_shingle_are_one_and_none_is_none():
    assert len(shingles("one two")) == len(shingles("one")) == len(shingles("川")) == 1
    assert len(shingles("")) == len(shingles("… - !")) == 0


def test_marks_of_vowels_belong_to_words():
    assert len(shingles("नदी का जलस्तर बढ़ा")) == 2


def test_hashes_are_the_same_for_ever():
    """They are stored: a change here needs a migration that recomputes them."""
    simhash, bands = near_keys("one two three four five")
    assert simhash == 525955091823064466
    assert bands == (290104919977177383, 7216996301546905766, None, None)
    assert title_sketch("One two three four") == (-5814819059976701926, 5822187935779239891)


def test_a_text_without_letters_has_no_near_keys():
    assert near_keys("!!! …") == NO_NEAR_KEYS


def test_only_a_telling_body_has_near_keys():
    stub = keys_of(Article("Flood", body="Subscribe to read on."))
    assert (stub.simhash, stub.bands) == NO_NEAR_KEYS
    whole = keys_of(Article("Flood", body=WIRE))
    assert whole.simhash is not None
    assert None not in whole.bands


def test_keys_fit_a_signed_bigint():
    keys = [keys_of(Article(f"Flood {n}", body=f"{WIRE} {n}")) for n in range(50)]
    numbers = [n for k in keys for n in (k.simhash, *k.bands, *k.title_sketch) if n is not None]
    assert all(-(2**63) <= number < 2**63 for number in numbers)
    assert min(numbers) < 0 < max(numbers)


def test_a_sketch_has_at_most_32_hashes_in_order():
    words = " ".join(f"word{n}" for n in range(60))
    sketch = title_sketch(words)
    assert len(sketch) == 32
    assert list(sketch) == sorted(set(sketch))
    assert len(title_sketch("one two three four five")) == 3
    assert title_sketch("") == ()


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        ("a b c d", "A, b: C — D!", 1.0),
        ("a b c d", "b c d e", 1 / 3),
        ("a b c", "x y z", 0.0),
        ("", "", 0.0),
        ("Gold for Norway - North Wire", "Gold for Norway", 1.0),
    ],
)
def test_titles_overlap_by_their_common_shingles(one, other, share):
    assert sketch_overlap(title_sketch(one), title_sketch(other)) == pytest.approx(share)


def near(one: str, other: str) -> bool:
    return near_overlap(Body(one), Body(other)) is not None


@pytest.mark.parametrize(
    "changed",
    [
        WIRE.replace("sandbags", "sandbag"),
        WIRE.replace("Holm", "Holmes"),
        WIRE.replace("Friday", "Thursday"),
        WIRE.replace("two metres", "3 metres"),
        WIRE.replace("Engineers", "Volunteers").replace("boats", "ropes"),
        WIRE + " Trains to the coast run again from Tuesday, said Iva Kern of the railway.",
        "BRENN (Reuters) - " + WIRE,
        WIRE + "\nReporting by Jane Doe and Ian Roe in Brenn; editing by Max Poe.",
        WIRE.replace("Mayor Ada Holm said that nobody had been hurt. ", ""),
    ],
)
def test_a_correction_a_paragraph_and_a_signature_leave_a_copy(changed):
    assert near(WIRE, changed)
    assert near(changed, WIRE)


def test_two_signatures_leave_two_copies():
    assert near(f"{WIRE}\nReporting by Jane Doe.", f"{WIRE}\nWith material of Ian Roe, Brenn Post.")


def test_reports_that_differ_in_names_and_scores_are_no_copies():
    one, other = REPORT.format(**FIRST), REPORT.format(**OTHER)
    assert not near(one, other)
    assert exchanged(Body(one), Body(other)) >= 4


@pytest.mark.parametrize("kept", FIRST)
def test_reports_that_share_one_name_are_no_copies(kept):
    assert not near(REPORT.format(**FIRST), REPORT.format(**{**OTHER, kept: FIRST[kept]}))


@pytest.mark.parametrize("changed", [("home", "away"), ("away", "score"), ("scorer", "second")])
def test_two_exchanged_names_are_enough(changed):
    """The words in common would do: it is the names that hold these apart."""
    one = REPORT.format(**FIRST)
    other = REPORT.format(**{**FIRST, **{name: OTHER[name] for name in changed}})
    assert overlap(Body(one), Body(other)) >= LEAST_OVERLAP
    assert not near(one, other)


def test_names_that_change_places_are_exchanged():
    swapped = {**FIRST, "home": FIRST["away"], "away": FIRST["home"]}
    assert not near(REPORT.format(**FIRST), REPORT.format(**swapped))


def test_one_corrected_name_is_a_correction():
    assert near(REPORT.format(**FIRST), REPORT.format(**{**FIRST, "scorer": "Marik"}))


def test_numbers_alone_make_another_report():
    prices = "Gold closed at 1,{a} dollars an ounce and silver at {b} dollars on the day. " + WIRE
    assert not near(prices.format(a=823, b=24), prices.format(a=790, b=22))


def test_chinese_reports_that_differ_in_names_and_scores_are_no_copies():
    one = CHINESE.format(
        home="流浪者", away="城市", score="二比一", scorer="马雷克", second="科斯塔"
    )
    other = CHINESE.format(
        home="阿尔比恩", away="小镇", score="三比零", scorer="林奎斯", second="魏斯"
    )
    assert not near(one, other)
    two = CHINESE.format(home="流浪者", away="城市", score="三比一", scorer="马雷克", second="魏斯")
    assert overlap(Body(one), Body(two)) >= LEAST_OVERLAP
    assert not near(one, two)
    corrected = CHINESE.format(
        home="流浪者", away="城市", score="二比一", scorer="马勒克", second="科斯塔"
    )
    assert near(one, corrected)


def test_where_there_are_no_capitals_every_word_may_be_a_name():
    words = ARABIC.split()
    once = " ".join([*words[:20], "كلمة", *words[21:]])
    twice = " ".join([*words[:20], "كلمة", *words[21:40], "أخرى", *words[41:]])
    assert near(ARABIC, once)
    assert overlap(Body(ARABIC), Body(twice)) >= LEAST_OVERLAP
    assert not near(ARABIC, twice)


@pytest.mark.parametrize(
    ("text", "word", "specific"),
    [
        (WIRE, "brenn", True),
        (WIRE, "friday", True),
        (WIRE, "schools", True),
        (WIRE, "the", False),
        (WIRE, "rose", False),
        (f"{WIRE} The rose garden of Rose Hill is shut.", "rose", True),
        (f"{WIRE} At 9pm it was over.", "9pm", True),
        (ARABIC, "النهر", True),
        (WIRE.upper(), "rose", True),
        ("მდინარე ღამით ორი მეტრით ავიდა. " * 20, "ორი", True),
    ],
)
def test_what_may_be_a_name_or_a_number(text, word, specific):
    assert Body(text).is_specific(word) == specific


def test_a_text_that_repeats_itself_counts_each_time():
    line = "The river rose two metres and the lower town was cleared. "
    one = line * 10
    other = one.replace("two", "three", 1)
    assert overlap(Body(one), Body(other)) == pytest.approx((108 - 3) / (108 + 3))
    assert near(one, other)
    assert not near(one, one.replace("two", "three"))


def test_texts_without_words_overlap_in_nothing():
    assert overlap(Body(""), Body("")) == 0.0
    assert overlap(Body("…"), Body(WIRE)) == 0.0
