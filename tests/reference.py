"""The whole test in plain NumPy and Fractions, independent of the kernels that it checks."""

from fractions import Fraction

import numpy as np

MASK32 = 0xFFFFFFFF


def philox4x32_10(counter, key):
    """Compute Philox4x32-10 as in Salmon et al. 2011, section 3.3, in Python integers."""
    c, k = list(counter), list(key)
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c[0], 1 << 32)
        high1, low1 = divmod(0xCD9E8D57 * c[2], 1 << 32)
        c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0]
        k = [(k[0] + 0x9E3779B9) & MASK32, (k[1] + 0xBB67AE85) & MASK32]
    return c


def draw_swaps(key, run, first, n_trials, n_units):
    """Return swap bits by the layout of scheme 1, with one call a trial and column."""
    bits = np.zeros((n_trials, n_units), bool)
    for t in range(n_trials):
        trial = first + t
        for u in range(n_units):
            counter = (trial & MASK32, (trial >> 32) | run << 16, u // 128, 0)
            bits[t, u] = philox4x32_10(counter, key)[u % 128 // 32] >> (u % 32) & 1
    return bits


def compute_pseudo_sums(a, b, bits):
    """Return sums of both pseudo-systems from contributions (n_units, n_fields) and swaps (n_trials, n_units)."""
    moved = bits.astype(np.int64) @ (b - a)
    return a.sum(0) + moved, b.sum(0) - moved


def compute_ratio(sums, above, below, zero_division=0):
    """Return a ratio of integer combinations as a Fraction."""
    d = sum(int(w) * int(s) for w, s in zip(below, sums, strict=True))
    n = sum(int(w) * int(s) for w, s in zip(above, sums, strict=True))
    return Fraction(n, d) if d else Fraction(zero_division)


def compute_macro(sums, rows_above, rows_below):
    """Return the mean of several ratios."""
    parts = [compute_ratio(sums, n, d) for n, d in zip(rows_above, rows_below, strict=True)]
    return sum(parts) / len(parts)


def count_exceedances(score, a, b, bits):
    """Count T >= t, T <= t and |T| >= |t|, in Fractions: ties are ties."""
    observed = score(a.sum(0)) - score(b.sum(0))
    first, second = compute_pseudo_sums(a, b, bits)
    differences = [score(x) - score(y) for x, y in zip(first, second, strict=True)]
    return [
        sum(d >= observed for d in differences),
        sum(d <= observed for d in differences),
        sum(abs(d) >= abs(observed) for d in differences),
    ]


def list_arrangements(n_units):
    """Return every swap of n units, shape (2**n, n)."""
    return (np.arange(2**n_units)[:, None] >> np.arange(n_units) & 1).astype(bool)


def draw_relabellings(key, run, first, n_trials, n_units, n_systems):
    """Return each unit's labels after relabelling (purpose 1): Fisher-Yates with Lemire's unbiased draws."""
    permuted = np.zeros((n_trials, n_units, n_systems), np.int64)
    for t in range(n_trials):
        trial = first + t
        for u in range(n_units):
            words = _iter_words((trial & MASK32, (trial >> 32) | run << 16 | 1 << 24, u), key)
            labels = list(range(n_systems))
            for i in range(n_systems - 1, 0, -1):
                product = next(words) * (i + 1)
                while product & MASK32 < (1 << 32) % (i + 1):
                    product = next(words) * (i + 1)
                j = product >> 32
                labels[i], labels[j] = labels[j], labels[i]
            permuted[t, u] = labels
    return permuted


def _iter_words(counter, key):
    call = 0
    while True:
        yield from philox4x32_10((*counter, call), key)
        call += 1
