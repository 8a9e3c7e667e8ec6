"""Error messages for checkpoints that transformers cannot read: which file, and what to do.

The libraries do not validate files before they parse them, so damage can raise any exception.
"""

from __future__ import annotations

import json
import pickle  # nosec B403 # for the error that torch.load raises
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kbprobe.errors import KbprobeError, UsageError
from kbprobe.parsing import MAX_JSON_BYTES
from kbprobe.reading import not_utf8, open_file, read_bytes

FILES = "its configuration and tokenizer"
"""The ``files`` argument of `reading` when a whole checkpoint is read."""

_OBJECTS = (
    *("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
    *("added_tokens.json", "vocab.json", "adapter_config.json", "*.index.json"),
)
_TEXTS = ("*.jinja", "vocab.txt", "merges.txt")
_GLOBAL = re.compile(r"GLOBAL ([\w.]+)")
_LONGEST = 300


@contextmanager
def reading(
    what: str, folder: Path, files: str, kind: type[KbprobeError] = KbprobeError
) -> Iterator[None]:
    """Turn exceptions raised while reading a checkpoint into errors that name the damaged file.

    Args:
        what: the beginning of the message: "the tokenizer of x cannot be loaded".
        folder: of the checkpoint; it need not exist, for example if the checkpoint is on the Hub.
        files: names of those that are read, for messages.
        kind: the class of the error to raise.

    Raises:
        KbprobeError: anything else was raised than a KbprobeError or a `MemoryError`, which are
            passed on.
    """
    try:
        yield
    except (KbprobeError, MemoryError):
        raise
    except Exception as error:  # third-party code on third-party files can raise anything
        raise kind(f"{what}: {_reason(error, folder, files)}") from error


def _reason(error: Exception, folder: Path, files: str) -> str:
    for path, problem in _damaged(folder):
        return f"{path} {problem}. Get it again, or correct it."
    if isinstance(error, pickle.UnpicklingError):
        held = ", ".join(str(path) for path in sorted(folder.glob("*.bin"))) or files
        if found := _GLOBAL.search(str(error)):
            return (
                f"{held}: a pickle that holds {found[1]}, not tensors alone. It was not read, "
                "since that could run code. Get the checkpoint's weights as safetensors."
            )
        return f"{held}: damaged, or no weights of PyTorch. Get them again, as safetensors."
    lines = str(error).strip().splitlines() or [""]
    said = " ".join((lines[0] if lines[0][-1:] != ":" else " ".join(lines)).split())[:_LONGEST]
    if isinstance(error, OSError | ImportError) or type(error).__name__ == "OutOfMemoryError":
        return said
    if "ignore_mismatched_sizes" in said:
        said = "its weights have other shapes than its configuration says"
    if not isinstance(error, ValueError | RuntimeError) and type(error) is not Exception:
        said = f"{type(error).__name__}: {said}"
    return f"{said.rstrip('.!')}. Check {files} in {folder}, or get the checkpoint again."


def _damaged(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file of a checkpoint that is damaged, and how."""
    checks = {name: _problem_of_object for name in _OBJECTS}
    checks |= {name: _problem_of_text for name in _TEXTS}
    checks |= {"*.safetensors": _problem_of_safetensors, "*.bin": _problem_of_archive}
    for pattern, check in checks.items():
        for path in sorted(folder.glob(pattern)):
            try:
                if problem := check(path):
                    yield path, problem
            except OSError as error:
                yield path, f"cannot be read: {error.strerror or error}"


def _problem_of_object(path: Path) -> str:
    try:
        value = json.loads(read_bytes(path, MAX_JSON_BYTES))
    except UsageError as error:
        return str(error).removeprefix(f"{path} ")
    except RecursionError:
        return "is nested too deeply"
    except ValueError as error:  # of JSON, or UTF-8
        return f"is not JSON: {error}"
    return "" if isinstance(value, dict) else "is not a JSON object"


def _problem_of_text(path: Path) -> str:
    try:
        read_bytes(path, MAX_JSON_BYTES).decode()
    except UnicodeDecodeError as error:
        return not_utf8(error)
    except UsageError as error:
        return str(error).removeprefix(f"{path} ")
    return ""


def _problem_of_safetensors(path: Path) -> str:
    size = path.stat().st_size
    with open_file(path) as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, MAX_JSON_BYTES):
            return "is damaged or cut off: it has no header of safetensors"
        try:
            header = json.loads(file.read(length))
            ends = [part["data_offsets"][1] for name, part in header.items() if name[:2] != "__"]
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return "is damaged: its header cannot be read"
    if max(ends, default=0) != size - 8 - length:
        return "is cut off, or damaged: its size is not what its header says"
    return ""


def _problem_of_archive(path: Path) -> str:
    with open_file(path) as file:
        head = file.read(2)
    if not head:
        return "is empty"
    return "is cut off" if head == b"PK" and not zipfile.is_zipfile(path) else ""
