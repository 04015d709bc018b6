"""Writes a parsed 4-bit model as a sentence-transformers folder: weights, tokenizer, settings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clustering.embedding.tokens import build_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from clustering.embedding.q4 import Q4File, Shape

# Half the file and half the reading of float32. Weights are products of a float16 scale and a
# whole number from -8 to 7; rounding them back to float16 moves a vector by less than 1e-6 of
# cosine (own measurement).
STORED_DTYPE = "float16"

EMBEDDING_NAMES = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
LAYER_NAMES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


def write_folder(source: Q4File, folder: Path) -> None:
    """Write everything that `SentenceTransformer(folder)` reads.

    Args:
        source: the parsed weight file.
        folder: an empty folder.

    Raises:
        ModelError: the file lacks a tensor.
        OSError: the folder cannot be written.
    """
    from safetensors.numpy import save_file  # noqa: PLC0415 - only needed once for a home folder

    weights = dict(bert_weights(source))
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    build_tokenizer(source).save(str(folder / "tokenizer.json"), pretty=False)
    for name, content in _settings(source).items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content, indent=1), "utf-8")


def bert_weights(source: Q4File) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the weights of a `BertModel` by their name there.

    Args:
        source: the parsed weight file.

    Yields:
        Name and array, matrices of shape (out, in), vectors of shape (out,).
    """
    hidden = source.shape.hidden
    for ours, theirs in EMBEDDING_NAMES.items():
        table = source.tensor(ours, STORED_DTYPE)
        yield theirs, table if ours.startswith("emb.ln") else table.reshape(-1, hidden)
    for layer in range(source.shape.layers):
        for ours, theirs in LAYER_NAMES.items():
            weight = source.tensor(f"l{layer}.{ours}.w", STORED_DTYPE)
            bias = source.tensor(f"l{layer}.{ours}.b", STORED_DTYPE)
            matrix = weight if ours.endswith("ln") else weight.reshape(len(bias), -1)
            yield f"encoder.layer.{layer}.{theirs}.weight", matrix
            yield f"encoder.layer.{layer}.{theirs}.bias", bias


def _settings(source: Q4File) -> dict[str, Any]:
    modules = ("Transformer", "Pooling", "Normalize")
    return {
        "config.json": _bert_config(source.shape, source.special["pad"]),
        "tokenizer_config.json": _tokenizer_config(source),
        # No pooler: sentence vectors are means, and the file has no weights for one.
        "sentence_bert_config.json": {
            "max_seq_length": source.shape.positions,
            "do_lower_case": False,
            "model_args": {"add_pooling_layer": False},
        },
        "1_Pooling/config.json": {
            "word_embedding_dimension": source.shape.hidden,
            "pooling_mode_mean_tokens": True,
        },
        "2_Normalize/config.json": {},
        "modules.json": [
            {
                "idx": place,
                "name": str(place),
                "path": f"{place}_{kind}" if place else "",
                "type": f"sentence_transformers.models.{kind}",
            }
            for place, kind in enumerate(modules)
        ],
    }


def _bert_config(shape: Shape, pad: int) -> dict[str, Any]:
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "intermediate_size": shape.inner,
        "vocab_size": shape.vocabulary,
        "max_position_embeddings": shape.positions,
        "type_vocab_size": shape.token_types,
        "layer_norm_eps": shape.epsilon,
        "pad_token_id": pad,
        # What to compute in; without it transformers takes the precision of the stored weights.
        "torch_dtype": "float32",
    }


def _tokenizer_config(source: Q4File) -> dict[str, Any]:
    pieces = {role: source.pieces[number][0] for role, number in source.special.items()}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": source.shape.positions,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        "bos_token": pieces["bos"],
        "cls_token": pieces["bos"],
        "eos_token": pieces["eos"],
        "sep_token": pieces["eos"],
        "pad_token": pieces["pad"],
        "unk_token": pieces["unk"],
    }
