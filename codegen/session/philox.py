"""Random numbers by counting: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, SC 2011).

A number follows from a seed, the path of what it is for, and its place, and from nothing else: every target gives the
same ones, in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
MASK = 0xFFFFFFFF
LARGEST_SEED = 2**64 - 1
_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3


def hashed(path: str) -> int:
    """The 64-bit FNV-1a hash of a path in UTF-8 (Fowler, Noll, Vo: draft-eastlake-fnv)."""
    value = _FNV_OFFSET
    for byte in path.encode():
        value = (value ^ byte) * _FNV_PRIME & 0xFFFFFFFFFFFFFFFF
    return value


def philox(counters: npt.NDArray[Any], key: tuple[int, int]) -> npt.NDArray[Any]:
    """The four 32-bit words of each counter.

    Args:
        counters: u32 [n, 4], the lowest word first.
        key: two 32-bit words.
    """
    import numpy as np

    words = [counters[:, n].astype(np.uint64) for n in range(4)]
    key0, key1 = key
    for _ in range(ROUNDS):
        low = words[0] * np.uint64(MULTIPLIERS[0])
        high = words[2] * np.uint64(MULTIPLIERS[1])
        words = [
            (high >> np.uint64(32)) ^ words[1] ^ np.uint64(key0),
            high & np.uint64(MASK),
            (low >> np.uint64(32)) ^ words[3] ^ np.uint64(key1),
            low & np.uint64(MASK),
        ]
        key0, key1 = (key0 + WEYL[0]) & MASK, (key1 + WEYL[1]) & MASK
    return np.stack(words, axis=1).astype(np.uint32)


def bits(seed: int, path: str, count: int, run: int = 0) -> npt.NDArray[Any]:
    """So many random 32-bit words of a path.

    Word n is word n % 4 of counter n / 4: its two lower words are n / 4, the third is ``run``, the fourth 0. The key is
    the seed's 64 bits, each half combined by exclusive or with that of the hash of the path.
    """
    import numpy as np

    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    counters = np.zeros((len(blocks), 4), np.uint32)
    counters[:, 0] = (blocks & np.uint64(MASK)).astype(np.uint32)
    counters[:, 1] = (blocks >> np.uint64(32)).astype(np.uint32)
    counters[:, 2] = run & MASK
    name = hashed(path)
    key = (seed ^ name) & MASK, (seed >> 32 ^ name >> 32) & MASK
    return philox(counters, key).reshape(-1)[:count]


def uniform(seed: int, path: str, count: int, bound: float) -> npt.NDArray[Any]:
    """So many f32 numbers, uniform in -bound (included) to bound: the upper 24 bits of a word, scaled.

    Every step is one of f32 arithmetic: the number of 24 bits times 2^-23, minus 1, times the bound.
    """
    import numpy as np

    whole = (bits(seed, path, count) >> np.uint32(8)).astype(np.float32)
    scaled: npt.NDArray[Any] = (whole * np.float32(2**-23) - np.float32(1)) * np.float32(bound)
    return scaled
