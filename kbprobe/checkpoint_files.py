"""The files of a checkpoint: found here or fetched from the Hub, and hashed once.

Weights are identified by content, never by name.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kbprobe.errors import KbprobeError, UsageError, did_you_mean
from kbprobe.files import file_state
from kbprobe.files.cache import cache_dir, read_note, write_note
from kbprobe.parsing import read_json
from kbprobe.reading import open_file
from kbprobe.terminal import without_credentials

CONFIG = "config.json"
_WHOLE = ("model.safetensors", "pytorch_model.bin")
"""Weights in one file; the names of several begin alike."""
_INDEX = ".index.json"
"""The ending of the file that names several."""
_VARIANT = re.compile(
    r"(pytorch_)?model(-\d[\w-]*)?\.(?P<variant>[a-z]\w*)(-\d[\w-]*)?\.(safetensors|bin)"
)
ADAPTER = "adapter_config.json"
"""The configuration of an adapter, which needs no config.json of its own."""

_CONFIG_FILES = ("*.json", "*.txt", "*.model", "*.jinja")
_TOKENIZER_FILES = (
    "tokenizer*",
    "vocab*",
    "merges*",
    "special_tokens*",
    "added_tokens*",
    "chat_template*",
    "*.model",
)
_SETTLED_NS = 10 * 10**9
"""Time since a file's last change after which its state is trusted: clocks tick in up to 2 s."""


def find_checkpoint(
    model: str, revision: str | None, loading: Mapping[str, Any]
) -> tuple[Path, str | None]:
    """Return the folder that holds a checkpoint, and the commit of one from the Hub.

    Raises:
        UsageError: there is no such checkpoint.
        KbprobeError: it cannot be fetched.
    """
    folder = check_local(model, revision)
    return _fetch(model, revision, loading) if folder is None else (folder, None)


def check_local(model: str, revision: str | None) -> Path | None:
    """Return the folder that holds a checkpoint here; None: it may be on the Hub.

    Raises:
        UsageError: there is no such checkpoint, and its name is not one of the Hub.
    """
    path = Path(model)
    if path.exists() and revision is not None:
        raise UsageError(f"--revision is of a checkpoint on the Hub; {model} is here and has none")
    if path.is_dir():
        if not (path / CONFIG).is_file() and not is_adapter(path):
            raise UsageError(f"{path} holds no checkpoint (no {CONFIG}). {_within(path)}")
        return path
    if path.is_file():
        if path.suffix == ".gguf":
            return path.parent
        raise UsageError(
            f"{model} is a file. Name the checkpoint's folder, a .gguf file or a Hub id."
        )
    if model.startswith((".", "/", "~")) or model.count("/") > 1 or model.endswith(".gguf"):
        raise UsageError(f"no checkpoint at {model}: no such file or folder.{_hint(model)}")
    return None


def _hint(model: str) -> str:
    """Suggest an existing folder with a name similar to the missing one."""
    path = Path(model)
    siblings = [str(one) for one in path.parent.glob("*")] if path.parent.is_dir() else []
    return did_you_mean(str(path), siblings)


def is_adapter(folder: Path) -> bool:
    """Return whether a folder holds an adapter, which is loaded into another model."""
    return (folder / ADAPTER).is_file()


def is_checkpoint(source: str) -> bool:
    """Return whether a folder holds a configuration and weights, or an adapter."""
    path = Path(source)
    if is_adapter(path):
        return True
    weights = (*path.glob("*.safetensors"), *path.glob("pytorch_model*.bin"))
    return (path / CONFIG).is_file() and bool(weights)


def _within(folder: Path) -> str:
    """Suggest the checkpoints within a folder, such as those that a training run saved."""
    held = sorted({path.parent for name in (CONFIG, ADAPTER) for path in folder.glob(f"*/{name}")})
    if held:
        return f"Name one of those within: {', '.join(map(str, held[:5]))}."
    if files := sorted(folder.glob("*.gguf")):
        return f"Name the file: {' or '.join(map(str, files[:5]))}."
    return "Name a folder that save_pretrained wrote."


def _fetch(model: str, revision: str | None, loading: Mapping[str, Any]) -> tuple[Path, str]:
    """Fetch a Hub checkpoint's files, safetensors where it has them, and return its commit."""
    import huggingface_hub

    def snapshot(patterns: Iterable[str]) -> Path:
        wanted = list(patterns)
        return Path(
            huggingface_hub.snapshot_download(model, revision=revision, allow_patterns=wanted)
        )

    patterns = [*_CONFIG_FILES, *(["*.py"] if loading["trust_remote_code"] else [])]
    if "gguf_file" in loading:
        patterns.append(loading["gguf_file"])
    with hub_errors(model, revision):
        folder = snapshot([*patterns, "model*.safetensors", "adapter_model.safetensors"])
        if "gguf_file" not in loading:
            adapted = any(folder.glob("adapter_model.safetensors"))
            if not adapted and weights_entry(folder, loading) is None:
                others = ["pytorch_model*.bin", "adapter_model.bin"]
                folder = snapshot([*patterns, *others, *_entry_names(folder, loading)])
            names = _shards(weights_entry(folder, loading))
            if further := [name for name in names if not (folder / name).is_file()]:
                folder = snapshot([*patterns, *further])
    # The folder of a snapshot is named by its commit.
    return folder, folder.name


@contextmanager
def hub_errors(model: str, revision: str | None) -> Iterator[None]:
    """Say in plain words what went wrong with a repository of the Hub.

    Raises:
        UsageError: there is no such repository or revision.
        KbprobeError: the Hub cannot be asked.
    """
    from huggingface_hub import errors

    # The base of the client's own errors, whose package differs between versions: httpx.HTTPError.
    unreachable: Any = errors.HfHubHTTPError.__bases__[0]
    try:
        yield
    except errors.RevisionNotFoundError as error:
        raise UsageError(f"{model} has no revision {revision!r} on the Hub") from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise UsageError(
            f"{model} is neither a folder here nor a checkpoint on the Hub that you may read."
            f"{_hint(model)} Check the spelling; a private one needs `hf auth login`."
        ) from error
    except (errors.LocalEntryNotFoundError, unreachable, OSError) as error:
        offline = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE")
        why = "offline mode is on" if offline else "the Hub cannot be reached"
        raise KbprobeError(
            f"{model} is neither a folder here nor in the local Hub cache, and {why}: "
            f"{first_line(error).rstrip('.')}.{_hint(model)}"
        ) from error


def weights_entry(folder: Path, loading: Mapping[str, Any]) -> Path | None:
    """Return the file that transformers begins with: all weights, or the index of their shards."""
    names = _entry_names(folder, loading)
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _entry_names(folder: Path, loading: Mapping[str, Any]) -> list[str]:
    """Return the names that transformers looks for, in order."""
    described = read_json(folder / CONFIG) if (folder / CONFIG).is_file() else None
    named = described.get("transformers_weights") if isinstance(described, dict) else None
    if isinstance(named, str):
        return [named]
    wholes = _WHOLE[1:] if loading.get("use_safetensors") is False else _WHOLE
    return [name for whole in wholes for name in (whole, f"{whole}{_INDEX}")]


def weight_files(model: str, folder: Path, loading: Mapping[str, Any]) -> list[Path]:
    """List the files that hold a checkpoint's weights.

    Raises:
        UsageError: an index cannot be read.
        KbprobeError: there are none, or one of several is missing.
    """
    if "gguf_file" in loading:
        return [folder / loading["gguf_file"]]
    entry = weights_entry(folder, loading)
    if entry is None:
        names = _entry_names(folder, loading)
        wanted = ", ".join(f"no {name}" for name in names if len(names) == 1 or name in _WHOLE)
        raise KbprobeError(f"{model} holds no weights ({wanted} in {folder}).{_variants(folder)}")
    files = [folder / name for name in _shards(entry) or [entry.name]]
    if missing := sorted(str(file) for file in files if not file.is_file()):
        raise KbprobeError(
            f"{model}: {entry} names {len(missing)} files that are not there, such as "
            f"{missing[0]}. Get the checkpoint again."
        )
    return sorted(files)


def local_weights_size(model: str, revision: str | None) -> int | None:
    """Return the size of the files of a checkpoint's weights, in bytes.

    None if they are not here, or cannot be loaded: loading says why.
    """
    try:
        folder = check_local(model, revision)
        if folder is None:
            from huggingface_hub import errors, try_to_load_from_cache

            try:
                cached = try_to_load_from_cache(model, CONFIG, revision=revision)
            except errors.HFValidationError:
                return None
            if not isinstance(cached, str):
                return None
            folder = Path(cached).parent
        loading = {"gguf_file": Path(model).name} if model.endswith(".gguf") else {}
        return sum(file.stat().st_size for file in weight_files(model, folder, loading))
    except (KbprobeError, OSError):
        return None


def _shards(entry: Path | None) -> list[str]:
    """Return the names of the files that an index names, as paths within its folder.

    Raises:
        UsageError: it is no index, or names files elsewhere.
    """
    if entry is None or not entry.name.endswith(_INDEX):
        return []
    read = read_json(entry)
    named = read.get("weight_map") if isinstance(read, dict) else None
    if not isinstance(named, dict) or not all(isinstance(one, str) for one in named.values()):
        raise UsageError(f"{entry} is no index of weights: it has no weight_map of file names")
    names = sorted({*named.values()})
    if outside := [one for one in names if os.path.isabs(one) or ".." in Path(one).parts]:
        raise UsageError(f"{entry} names {outside[0]!r}, which is outside of its folder")
    return names


def _variants(folder: Path) -> str:
    """Say how to load weights that are there under the names of a variant."""
    for name in sorted(path.name for path in folder.iterdir()):
        if found := _VARIANT.fullmatch(name):
            return (
                f" {name} is of a variant: load it with from_pretrained(..., variant="
                f"{found['variant']!r}), and save it to a folder with save_pretrained."
            )
    return ""


def tokenizer_files(folder: Path) -> list[Path]:
    """List the files that a checkpoint's tokenizer is made of."""
    found = {file for mask in _TOKENIZER_FILES for file in folder.glob(mask)}
    return sorted(file for file in found if file.is_file())


def file_digest(path: Path) -> str:
    """Return a file's sha256.

    It is remembered for as long as the file's state stays the same, see `file_state`, and hashed
    anew where that proves nothing: a file that changed just now can change again at the same time
    by a coarse clock, and on Windows ctime is the time of creation.
    """
    real = path.resolve()
    # Opened first: network file systems then ask for the state instead of using a cached one.
    with open_file(real) as file:
        state = [*file_state(os.fstat(file.fileno()))]
        note = cache_dir() / "hashes" / hashlib.sha256(str(real).encode()).hexdigest()
        settled = os.name == "posix" and 0 < state[2] < time.time_ns() - _SETTLED_NS
        told = {"path": str(real), "state": state}
        if settled:
            known = read_note(note)
            if known is not None and known == {**told, "sha256": known.get("sha256")}:
                return str(known["sha256"])
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        settled = settled and [*file_state(os.fstat(file.fileno()))] == state
    if settled:
        write_note(note, {**told, "sha256": sha256})
    return sha256


def digest_of_files(paths: Iterable[Path]) -> str:
    """Return one sha256 for several files: of their names and contents, in order of name."""
    digest = hashlib.sha256()
    for path in sorted(paths, key=lambda path: path.name):
        digest.update(f"{path.name}\0{file_digest(path)}\n".encode())
    return digest.hexdigest()


def weights_digest(
    model: str, folder: Path, loading: Mapping[str, Any], code: Iterable[Path] = ()
) -> str:
    """Return one sha256 for a checkpoint's weights, configuration and code.

    Raises:
        UsageError: an index of weights cannot be read.
        KbprobeError: there are no weights, or one of several files is missing.
    """
    files = weight_files(model, folder, loading)
    return digest_of_files([*files, *folder.glob(CONFIG), *code])


def not_of_weights(loading: Mapping[str, Any]) -> dict[str, Any]:
    """Keep those arguments of ``from_pretrained`` that configurations and tokenizers take too."""
    both = ("gguf_file", "trust_remote_code")
    return {name: value for name, value in loading.items() if name in both}


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its type where it has none."""
    lines = without_credentials(str(error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__
