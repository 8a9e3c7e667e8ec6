"""Random numbers that depend on *what* is drawn, never on when.

Each number is a hash of the seed, a purpose and the integers that identify the draw (a row's
concept, its gold, the candidate): the same question gets the same draw whatever else is built, in
whatever order, by however many workers, under any version of NumPy. The hash is SplitMix64's
finaliser (Steele, Lea & Flood, 2014) over the keys in turn.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kbprobe.arrays import Floats, UInts

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)


def _mix(state: UInts) -> UInts:
    state = state + _GOLDEN
    state ^= state >> np.uint64(30)
    state *= _MIX1
    state ^= state >> np.uint64(27)
    state *= _MIX2
    state ^= state >> np.uint64(31)
    return state


def _key(seed: int, purpose: tuple[str, ...]) -> int:
    text = "\x1f".join((str(seed), *purpose)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


@dataclass(frozen=True)
class RandomGenerator:
    """A source of draws for one purpose.

    >>> rng = RandomGenerator.of(7, "wordnet_hypernymy", "answer position")
    >>> a = rng.uniform(np.array([1, 2, 3]))
    >>> b = rng.uniform(np.array([3, 2, 1]))
    >>> bool((a == b[::-1]).all())
    True
    """

    key: int
    seed: int = 0

    @classmethod
    def of(cls, seed: int, *purpose: str) -> RandomGenerator:
        """Derive a generator from the user's seed and a purpose, given as text."""
        return cls(_key(seed, purpose), seed)

    def child(self, *purpose: str | int) -> RandomGenerator:
        """Derive an independent generator for a sub-purpose."""
        return RandomGenerator(_key(self.key, tuple(str(part) for part in purpose)), self.seed)

    def shared(self, *purpose: str) -> RandomGenerator:
        """Derive a generator that depends only on the user's seed and a purpose.

        All probes with the same seed draw the same numbers from it.
        """
        return RandomGenerator.of(self.seed, *purpose)

    def bits(self, *keys: npt.ArrayLike) -> UInts:
        """Return 64 random bits for each element of the (broadcast) integer keys."""
        with np.errstate(over="ignore"):
            state = _mix(np.array([self.key], dtype=np.uint64))
            for key in keys:
                state = _mix(state ^ np.asarray(key).astype(np.uint64))
        return state

    def uniform(self, *keys: npt.ArrayLike) -> Floats:
        """Return floats strictly between 0 and 1, one for each element of the keys."""
        return ((self.bits(*keys) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53

    def below(self, bound: npt.ArrayLike, *keys: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return integers in ``0 .. bound - 1`` (``bound`` may be an array; at most 2**52)."""
        return np.asarray(self.uniform(*keys) * np.asarray(bound), dtype=np.int64)
