"""Tests of the addressed random stream: known answers, addressing, independence."""

from unicodedata import normalize

import numpy as np
import pytest
import reference

from sigdask.counts import Counts
from sigdask.randomization.kernels.labels import sum_relabelled
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.stream import (
    RELABEL,
    compute_stream_key,
    draw_swap_bits,
    get_run_word,
)

ALL_BITS = 0xFFFFFFFF
# Random123 1.14, tests/kat_vectors, lines "philox4x32 10": counter, key, words
KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ALL_BITS,) * 4, (ALL_BITS,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
KEY = compute_stream_key(7, "set", ["a", "b"])


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN_ANSWERS)
def test_the_reference_gives_the_known_answers_of_random123(counter, key, words):
    assert tuple(reference.philox4x32_10(counter, key)) == words


@pytest.mark.parametrize("first", [0, 5, 2**32 - 3, 2**40])
@pytest.mark.parametrize("run", [0, 1, 255])
def test_bits_stand_at_their_addresses(first, run):
    expected = reference.draw_swaps(KEY, run, first, 6, 300)
    assert (draw_swap_bits(KEY, run=run, first=first, n_trials=6, n_units=300) == expected).all()
    assert (draw_swap_bits(KEY, run=run, first=first, n_trials=1, n_units=300) == expected[:1]).all()


def test_the_stream_of_scheme_1_is_frozen():
    # a change here is a new scheme: it changes every p-value ever printed
    assert compute_stream_key(0, "", 3) == (3124904427, 461010963)
    bits = draw_swap_bits(compute_stream_key(0, "newstest", ["a", "b"]), run=1, first=2**33, n_trials=4, n_units=128)
    assert np.packbits(bits[:, :32]).tobytes().hex() == "499b248bc79e0d40252289df7b340330"


@pytest.mark.parametrize(
    ("run", "word", "golden"),
    [
        (0, 1 << 24, [[131, 422, 313, 244], [133, 411, 342, 224], [222, 141, 333, 414], [324, 241, 113, 432]]),
        (
            1,
            1 << 24 | 1 << 16,
            [[342, 124, 211, 433], [113, 331, 222, 444], [421, 144, 313, 232], [141, 333, 422, 214]],
        ),
    ],
)
def test_the_stream_of_relabellings_is_frozen(run, word, golden):
    # system k gives k + 1, ten or a hundred times as much in the second and third unit: digits are labels
    key = compute_stream_key(0, "newstest", ["a", "b", "c"])
    values = (10 ** np.arange(3))[:, None, None] * np.arange(1, 5)[None, :, None]
    sums = np.zeros((4, 4, 1), np.int64)
    sum_relabelled(
        np.array(key, np.uint32),
        get_run_word(run, RELABEL),
        2**33,
        np.arange(3),
        values,
        np.zeros((4, 1), np.int64),
        False,
        sums,
    )
    assert sums[:, :, 0].tolist() == golden
    assert int(get_run_word(run, RELABEL)) == word
    labels = reference.draw_relabellings(key, run, 2**33, 4, 3, 4) + 1  # (trial, unit, system)
    assert (labels * [[1], [10], [100]]).sum(axis=1).tolist() == golden


@pytest.mark.parametrize(
    ("ids", "names", "apart", "together"),
    [
        (None, ("1 1", "2 1", "1 2", "2 2"), (2274628915, 1991497708), (119172427, 527132453)),
        (("x", "y"), ("x 1", "y 1", "x 2", "y 2"), (3342317052, 1286540232), (516149483, 345921770)),
    ],
)
def test_the_names_of_replicates_are_frozen(ids, names, apart, together):
    # they are items of the set that is shuffled, and so part of the key of its stream
    replicate = Counts.from_scores({"a": [1, 2], "b": [2, 1]}, ids=ids)
    counts = Counts.of_replicates([replicate, replicate], apart=True)
    assert counts.ids == names
    assert counts.groups["segment"] == (ids or ("1", "2")) * 2
    assert SwapUnits.from_counts(counts, 0).key == compute_stream_key(0, "", sorted(names)) == apart
    assert SwapUnits.from_counts(counts.with_unit("segment"), 0).key == compute_stream_key(
        0, "", ["x", "y"] if ids else ["1", "2"]
    )
    assert SwapUnits.from_counts(Counts.of_replicates([replicate, replicate]), 0).key == together


def test_key_depends_on_seed_name_and_units_and_on_nothing_else():
    keys = {
        compute_stream_key(0, "", ["a", "b"]),
        compute_stream_key(1, "", ["a", "b"]),
        compute_stream_key(0, "x", ["a", "b"]),
        compute_stream_key(0, "", ["ab"]),
        compute_stream_key(0, "", ["a", "c"]),
        compute_stream_key(0, "", 2),
    }
    assert len(keys) == 6
    assert compute_stream_key(0, "caf\u00e9", 2) == compute_stream_key(0, "cafe\u0301", 2)


def test_unit_ids_are_canonical_nfc_and_in_byte_order():
    # UTF-8 bytes order U+FF5E before U+1F600, where UTF-16 would not; capitals before small letters
    ids = ["\U0001f600", "a", "cafe\u0301", "Z", "\uff5e", "10", "9"]
    order = ["10", "9", "Z", "a", "caf\u00e9", "\uff5e", "\U0001f600"]
    units = SwapUnits.from_counts(build_scores(ids), 0)
    assert [order[k] for k in units.index] == [normalize("NFC", name) for name in ids]
    assert units.key == compute_stream_key(0, "", order)


def build_scores(ids):
    return Counts.from_scores({"a": range(len(ids)), "b": range(len(ids))}, ids=ids)
