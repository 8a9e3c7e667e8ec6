"""Arrow columns as NumPy arrays, without the detour through pandas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
#: NumPy's types by Arrow's names.
_DTYPES: dict[str, np.dtype[Any]] = {name: np.dtype(name) for name in _INTEGERS}
_DTYPES |= {"float": np.dtype("float32"), "double": np.dtype("float64")}


def arrow_type(name: str) -> pa.DataType:
    """Return an Arrow type by its name, such as ``string`` or ``list<item: int32>``."""
    import pyarrow as pa

    if name.startswith("list<item: "):
        return pa.list_(arrow_type(name.removeprefix("list<item: ").removesuffix(">")))
    return pa.type_for_alias(name)


def single_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array; nothing is copied where it has one chunk already."""
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    chunks = column.unify_dictionaries().chunks
    return pa.concat_arrays(chunks) if chunks else pa.array([], column.type)


def plain(column: pa.Array) -> pa.Array:
    """Return a column without its dictionary, if it has one."""
    import pyarrow as pa

    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def to_numpy(column: pa.ChunkedArray | pa.Array) -> npt.NDArray[Any]:
    """Return a column of numbers without nulls as a read-only NumPy array of the same type.

    Nothing is copied where the column has one chunk. Arrow's own ``to_numpy`` imports pandas
    wherever that is installed, which takes longer (0.2 s) than loading all of WordNet.

    Raises:
        TypeError: the column holds anything other than numbers, or nulls.
    """
    array = single_chunk(column)
    dtype = _DTYPES.get(str(array.type))
    if dtype is None or array.null_count:
        raise TypeError(f"a column of {array.type} with {array.null_count} nulls is no NumPy array")
    values = array.buffers()[1]
    if values is None or len(array) == 0:
        return np.empty(0, dtype=dtype)
    return np.frombuffer(values, dtype, count=len(array), offset=array.offset * dtype.itemsize)


def mask(column: pa.ChunkedArray | pa.Array) -> npt.NDArray[np.bool_]:
    """Return a column of booleans as a NumPy array; a null counts as false."""
    return to_numpy(single_chunk(column).fill_null(False).cast("uint8")).astype(np.bool_)


def positions(values: Any, wanted: Any) -> npt.NDArray[np.int64]:
    """Return the position of each of ``wanted`` in the distinct ``values``; -1 if it is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrow = (pa.Array, pa.ChunkedArray)
    values, wanted = (
        single_chunk(one) if isinstance(one, arrow) else pa.array(one) for one in (values, wanted)
    )
    return to_numpy(pc.index_in(wanted, value_set=values).fill_null(-1)).astype(np.int64)


def codes(column: pa.ChunkedArray | pa.Array) -> tuple[npt.NDArray[Any], list[str]]:
    """Return a dictionary column as ``(codes, words)``: row ``i`` holds ``words[codes[i]]``."""
    array = single_chunk(column)
    return to_numpy(array.indices), array.dictionary.to_pylist()


def sparse_texts(texts: Mapping[int, str], length: int) -> pa.Array:
    """Return a column of strings that is null except in some rows.

    >>> sparse_texts({1: "a"}, 3).to_pylist()
    [None, 'a', None]
    """
    import pyarrow as pa

    words = sorted(set(texts.values()))
    numbers, held = np.zeros(length, dtype=np.int32), np.zeros(length, dtype=np.bool_)
    number_of = {word: number for number, word in enumerate(words)}
    for row, text in texts.items():
        numbers[row], held[row] = number_of[text], True
    indices = pa.array(numbers, mask=~held)
    return pa.DictionaryArray.from_arrays(indices, pa.array(words, pa.string())).dictionary_decode()
