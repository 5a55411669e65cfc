"""Writes vectors.json, what the tests of pubmark-stats compare against.

Run, in this folder, with Python 3.11 or later:

    python3 -m venv /tmp/vectors
    /tmp/vectors/bin/pip install numpy==2.4.6 scipy==1.17.1 pymannkendall==1.4.3 hdrhistogram==0.10.8
    /tmp/vectors/bin/python make_vectors.py

The versions are those of the vectors that are checked in. Nothing here is a
copy of the code under test: the HdrHistogram V2 bytes are packed by hand or by
the Python library.
"""

import base64
import itertools
import json
import pathlib
import struct
import zlib

import numpy as np
import pymannkendall
from hdrh.histogram import HdrHistogram
from scipy import linalg, optimize, special, stats

HOUR_NS = 3_600_000_000_000


def normal():
    zs = [-37.0, -30.0, -12.5, -8.0, -5.0, -4.0, -3.0, -2.9, -2.8, -2.0, -1.959963984540054,
          -1.0, -0.5, -1e-3, -1e-9, 0.0, 1e-9, 0.3, 1.0, 1.6448536269514722, 2.0, 2.83, 5.0, 9.0]
    xs = [-3.0, -1.0, -0.1, 0.0, 1e-8, 0.1, 0.5, 1.0, 1.5, 1.99, 2.0, 2.01, 2.5, 4.0, 8.0, 15.0, 26.0]
    return {
        "cdf": [[z, float(special.ndtr(z))] for z in zs],
        "erfc": [[x, float(special.erfc(x))] for x in xs],
    }


def student():
    """Two-sided tails, and the t of given tails, by degrees of freedom."""
    degrees = [1.0, 1.37, 2.0, 2.5, 4.0, 7.9, 8.0, 18.0, 60.5, 200.0, 1000.0]
    ts = [-2.0, 1e-6, 0.1, 0.7, 1.0, 1.96, 2.5, 4.3, 12.7, 63.0, 1e3, 1e6]
    tails = [0.9, 0.5, 0.05, 0.01, 1e-3, 1e-5, 1e-8]
    return {
        "p": [[t, df, float(2 * stats.t.sf(abs(t), df))] for df in degrees for t in ts],
        "t": [[p, df, float(stats.t.isf(p / 2, df))] for df in degrees for p in tails],
    }


def holm():
    """From the definition: the smallest level at which each is rejected."""
    families = [
        [0.01],
        [0.04, 0.01, 0.03],
        [0.001, 0.9, 0.02, 0.02, 1.0],
        [0.5, 0.5, 0.5],
        [1e-9, 0.012, 0.013, 0.05, 0.2, 1e-9],
    ]
    out = []
    for family in families:
        ordered = sorted(family)
        running, at = [], {}
        for place, p in enumerate(ordered):
            running.append(min(1.0, (len(family) - place) * p))
            at[p] = max(running) if p not in at else at[p]
        out.append({"p": family, "adjusted": [at[p] for p in family]})
    return out


def groupings(systems):
    """All ways to part systems into groups of equal ones."""
    if not systems:
        yield []
        return
    first, rest = systems[0], systems[1:]
    for others in groupings(rest):
        yield [[first], *others]
        for place, group in enumerate(others):
            yield [*others[:place], [first, *group], *others[place + 1:]]


def equal_at_most(systems, refused):
    """The most pairs that can be equal where so many are not, by trying all."""
    pairs = systems * (systems - 1) // 2
    counts = {sum(len(g) * (len(g) - 1) // 2 for g in groups) for groups in groupings(list(range(systems)))}
    return max(count for count in counts if count <= pairs - refused)


def ranked(table, alpha=0.05, bound=0.05, caution=0.1):
    """The ranking of complete tables, points by systems by blocks, from its definition."""
    logs = [np.log(np.array(point)) for point in table]
    pairs, seen = [], []
    for point, values in enumerate(logs):
        systems = len(values)
        for a, b in itertools.combinations(range(systems), 2):
            difference = values[a] - values[b]
            n = len(difference)
            pairs.append({"point": point, "a": a, "b": b, "mean": difference.mean(), "variance": difference.var(ddof=1), "n": n})
            seen.append((difference.var(ddof=1), n - 1, 2 / systems))
    observed, degrees, weights = map(np.array, zip(*seen))

    def profile(prior):
        loss = lambda log: -np.sum(weights * (stats.f.logpdf(observed / np.exp(log), degrees, prior) - log))
        start = np.log(np.mean(observed))
        found = optimize.minimize_scalar(loss, bounds=(start - 12, start + 3), method="bounded", options={"xatol": 1e-11})
        return -found.fun, float(np.exp(found.x))

    grid = [128 * 2 ** (-k / 2) for k in range(19)]
    likelihoods, variances = zip(*map(profile, grid))
    best = int(np.argmax(likelihoods))
    far = stats.t.isf(caution, float(np.sum(weights)) - 1)
    allowed = best
    while allowed + 1 < len(grid) and 2 * (likelihoods[best] - likelihoods[allowed + 1]) <= far**2:
        allowed += 1
    prior = grid[allowed] if allowed + 1 < len(grid) else 0.0
    total = float(np.sum(weights * degrees))
    for pair in pairs:
        own = pair["n"] - 1
        variance = (prior * variances[min(best, grid.index(2.0))] + own * pair["variance"]) / (prior + own)
        others = prior / (prior + own) * (total - own) / total
        df = min(prior + own, 1 / ((1 - others) ** 2 / own + others**2 / (total - own)))
        error = np.sqrt(variance / pair["n"])
        half = stats.t.isf(0.025, df) * error
        pair["interval"] = [float(np.exp(pair["mean"] - half)), float(np.exp(pair["mean"] + half))]
        pair["p"] = float(2 * stats.t.sf(abs(pair["mean"]) / error, df))
        pair["p_same"] = float(stats.t.sf((np.log1p(bound) - abs(pair["mean"])) / error, df))
        pair["different"] = pair["same"] = False
    refused = [0] * len(table)
    for pair in sorted(pairs, key=lambda pair: pair["p"]):
        if pair["p"] > 0.8 * alpha / sum(equal_at_most(len(table[k]), refused[k]) for k in range(len(table))):
            break
        pair["different"] = True
        refused[pair["point"]] += 1
    for place, pair in enumerate(sorted(pairs, key=lambda pair: pair["p_same"])):
        if pair["p_same"] > 0.12 * alpha / (len(pairs) - place):
            break
        pair["same"] = True
    keys = ["point", "a", "b", "interval", "different", "same"]
    return {"table": table, "pairs": [{key: pair[key] for key in keys} for pair in pairs]}


def rankings():
    rng = np.random.default_rng(20260303)
    out = []
    for points, systems, blocks, noise in [(3, 3, 3, 0.02), (8, 2, 4, 0.05), (2, 5, 5, 0.01), (1, 3, 10, 0.015), (12, 2, 2, 0.01)]:
        typical = 100 * np.exp(0.1 * rng.integers(0, 3, (points, systems, 1)))
        drift = np.exp(rng.normal(0, 0.2, (points, 1, blocks)))
        own = np.exp(noise * rng.standard_t(6, (points, systems, blocks)))
        out.append(ranked((typical * drift * own).round(6).tolist()))
    return out


def changes():
    """Welch's test where its degrees of freedom stand: equal groups of three or more."""
    groups = [
        ([10.0, 10.5, 9.8], [11.0, 12.0, 11.4]),
        ([100.0, 104.0, 99.0, 101.0, 250.0], [140.0, 150.0, 144.0, 139.0, 141.0]),
        ([1e9, 1.1e9, 0.9e9, 1e9], [5e8, 2e9, 1e9, 7e8]),
    ]
    out = []
    for a, b in groups:
        test = stats.ttest_ind(np.log(b), np.log(a), equal_var=False)
        interval = test.confidence_interval(0.95)
        out.append({
            "a": a, "b": b, "p": float(test.pvalue),
            "ratio": float(stats.gmean(b) / stats.gmean(a)),
            "lo": float(np.exp(interval.low)), "hi": float(np.exp(interval.high)),
        })
    return out


def resembling(values, slope, z):
    """The correlation of neighbours without the trend, and the p that allows for it, by matrices."""
    n = len(values)
    rest = np.array(values) - slope * np.arange(n)
    ranks = stats.rankdata(np.round(rest / max(abs(rest)), 9))
    ranks -= ranks.mean()
    seen = ranks[1:] @ ranks[:-1] / (ranks @ ranks) if ranks @ ranks > 0 else None
    factor = 0.0 if seen is None else 0.98 if n == 4 else min(max((n * seen + 2) / (n - 4), 0), 0.98)
    time = np.arange(n) - (n - 1) / 2
    covariance = linalg.toeplitz(factor ** np.arange(n))
    widened = np.sqrt(max(time @ covariance @ time / (time @ time), 1))
    degrees = max(n * (1 - factor) / (1 + factor), 3) - 2
    return float(factor), float(2 * stats.t.sf(abs(z) / widened, degrees))


def trends():
    rng = np.random.default_rng(20260101)
    series = {
        "rising": list(range(1, 13)),
        "falling": [9.5, 9.1, 9.2, 8.0, 7.7, 7.9, 6.5, 6.1, 5.0, 4.8],
        "equal": [3.0] * 10,
        "two levels": [1, 1, 1, 2, 2, 1, 2, 2, 2, 2, 1, 2],
        "short": [4.0, 1.0, 3.0, 2.0],
        "short rising": [1.0, 2.0, 4.0, 8.0],
        "noise": rng.normal(100, 5, 30).round(6).tolist(),
        "noise on a slope": (rng.normal(100, 5, 60) + 0.3 * np.arange(60)).round(6).tolist(),
        "counts with ties": rng.integers(0, 6, 50).tolist(),
        "around zero": rng.normal(0, 1, 25).round(6).tolist(),
        "heavy tail": (rng.pareto(1.2, 40) * 1e5).round(3).tolist(),
        "wandering": np.cumsum(rng.normal(0, 1, 40)).round(6).tolist(),
    }
    out = []
    for name, values in series.items():
        values = [float(v) for v in values]
        n = len(values)
        test = pymannkendall.original_test(values)
        # SciPy's asymptotic p has the same variance but no continuity correction.
        tau = stats.kendalltau(np.arange(n), values, method="asymptotic", variant="b")
        theil = stats.theilslopes(values, np.arange(n))
        typical = float(np.median(np.abs(values)))
        factor, p_resembling = resembling(values, float(theil.slope), float(test.z))
        out.append({
            "name": name,
            "values": values,
            "s": int(test.s),
            "variance": float(test.var_s),
            "z": float(test.z),
            "p": float(special.erfc(abs(test.z) / np.sqrt(2))),
            "p_uncorrected": None if np.isnan(tau.pvalue) else float(tau.pvalue),
            "resemblance": factor,
            "p_resembling": p_resembling,
            "slope": float(theil.slope),
            "relative_change": float(theil.slope) * (n - 1) / typical,
        })
        # pymannkendall takes 1 - cdf, which is exact to 1e-16 only in absolute terms.
        assert abs(out[-1]["p"] - test.p) < 1e-14
    return out


def typical():
    """Student's interval for the mean of logarithms, or of plain values where one is not above 0."""
    series = [
        [10.0, 20.0],
        [3.0, 1.0, 2.0],
        [812.5, 790.25, 1003.0, 805.0, 799.0],
        [1e9, 1.1e9, 0.9e9, 1e9, 7e9, 1.05e9, 0.98e9],
        [0.0, 4.0, 1.0],
        [-4.0, 4.0, 0.0, 2.0, -1.0, 2.0],
    ]
    out = []
    for values in series:
        scale, back = (np.log, np.exp) if min(values) > 0 else (np.array, np.array)
        interval = stats.ttest_1samp(scale(values), 0).confidence_interval(0.95)
        middle = float(np.median(values))
        lo, hi = min(float(back(interval.low)), middle), max(float(back(interval.high)), middle)
        out.append({"values": values, "median": middle, "lo": lo, "hi": hi})
    return out


def distribution(name):
    """The integers that the tests compute by the same rule."""
    if name == "uniform":
        return [(i * 7919) % 1_000_003 + 1 for i in range(20_000)]
    if name == "heavy":
        return [1_000_000_000_000 // ((i * 7919) % 20_011 + 1) for i in range(20_000)]
    if name == "bimodal":
        return [50_000 + i % 97 if i % 10 else 40_000_000 + (i * 31) % 5_000_000 for i in range(20_000)]
    raise ValueError(name)


def quantiles():
    out = []
    for name in ["uniform", "heavy", "bimodal"]:
        values = np.array(distribution(name), dtype=np.int64)
        at = [0.001, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0]
        out.append({
            "name": name,
            "count": len(values),
            "min": int(values.min()),
            "max": int(values.max()),
            "mean": float(values.mean()),
            "stddev": float(values.std()),
            "at": [[q, int(np.quantile(values, q, method="inverted_cdf"))] for q in at],
        })
    return out


def zigzag(number):
    encoded = (number << 1) ^ (number >> 63)
    out = bytearray()
    for position in range(9):
        if position == 8:
            out.append(encoded & 0xFF)
        elif encoded < 0x80:
            out.append(encoded)
            break
        else:
            out.append(encoded & 0x7F | 0x80)
            encoded >>= 7
    return bytes(out)


def index_of(value, digits):
    sub_buckets = 1
    while sub_buckets < 2 * 10**digits:
        sub_buckets *= 2
    octave = 0
    while value >> octave >= sub_buckets:
        octave += 1
    return octave * sub_buckets // 2 + (value >> octave)


def pack(values, digits, high=HOUR_NS, low=1, ratio=1.0, numbers=None, compress=zlib.compress):
    if numbers is None:
        counts = {}
        for value in values:
            counts[index_of(value, digits)] = counts.get(index_of(value, digits), 0) + 1
        numbers, at = [], 0
        for index in sorted(counts):
            if index > at:
                numbers.append(at - index)
            numbers.append(counts[index])
            at = index + 1
    body = b"".join(zigzag(n) for n in numbers)
    head = struct.pack(">IIIIQQd", 0x1C849313, len(body), 0, digits, low, high, ratio)
    packed = compress(head + body)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(packed)) + packed).decode()


def with_strategy(level, strategy):
    def compress(data):
        c = zlib.compressobj(level, zlib.DEFLATED, 15, 9, strategy)
        return c.compress(data) + c.flush()
    return compress


def match_lengths():
    return [*range(3, 251), 257, 258]


def histograms():
    """What each text holds: a list of values, or the name of a rule that the
    tests follow too."""
    values = distribution("heavy")[:3_000] + [0, 1, 2047, 2048, HOUR_NS]
    library = HdrHistogram(1, HOUR_NS, 3)
    for value in values:
        library.record_value(value)
    few = HdrHistogram(1, HOUR_NS, 2)
    few.record_value(123_456)
    packings = {
        "stored": (0, zlib.Z_DEFAULT_STRATEGY),
        "fast": (1, zlib.Z_DEFAULT_STRATEGY),
        "best": (9, zlib.Z_DEFAULT_STRATEGY),
        "fixed codes": (9, zlib.Z_FIXED),
        "huffman only": (9, zlib.Z_HUFFMAN_ONLY),
        "run length": (9, zlib.Z_RLE),
    }
    out = [
        {"name": "Python library, 3 digits", "digits": 3, "rule": "heavy", "text": library.encode().decode()},
        {"name": "Python library, 2 digits", "digits": 2, "rule": [123_456], "text": few.encode().decode()},
    ]
    for name, packing in packings.items():
        text = pack(values, 3, compress=with_strategy(*packing))
        out.append({"name": name, "digits": 3, "rule": "heavy", "text": text})
    # Run-length matches of every DEFLATE length symbol, at both ends of each.
    numbers = []
    for run in match_lengths():
        numbers += [1] * (run + 1) + [run]
    text = pack([], 3, numbers=numbers, compress=with_strategy(9, zlib.Z_RLE))
    out.append({"name": "runs", "digits": 3, "rule": "runs", "text": text})
    out.append({"name": "empty", "digits": 2, "rule": [], "text": pack([], 2)})
    out.append({"name": "narrower", "digits": 2, "rule": [5, 900], "text": pack([5, 900], 2, high=1_000)})
    two_hours = [7, 2 * HOUR_NS]
    out.append({"name": "wider", "digits": 3, "rule": two_hours, "text": pack(two_hours, 3, high=4 * HOUR_NS)})
    return out


def hostile():
    """Each well formed down to one flaw, with the variant that names it."""
    bomb = zlib.compress(bytes(8 << 20), 9)
    head = struct.pack(">II", 0x1C849314, len(bomb))
    good = pack([1, 2, 3], 3)
    raw = bytearray(base64.b64decode(good))
    checksum = bytes(raw[:-1]) + bytes([raw[-1] ^ 1])
    tail = struct.pack(">II", 0x1C849314, len(raw) - 8 + 3) + bytes(raw[8:]) + b"abc"
    cookie = b"\x1c\x84\x93\x13" + bytes(raw[4:])
    huge = zlib.compress(struct.pack(">IIIIQQd", 0x1C849313, 0xFFFFFFFF, 0, 3, 1, HOUR_NS, 1.0))
    huge = struct.pack(">II", 0x1C849314, len(huge)) + huge
    b64 = lambda data: base64.b64encode(data).decode()
    return [
        ["bomb of 8 MiB", "Inflate", b64(head + bomb)],
        ["checksum", "Inflate", b64(checksum)],
        ["bytes after the stream", "Inflate", b64(tail)],
        ["cut short", "Malformed", b64(bytes(raw[:-5]))],
        ["uncompressed cookie", "Malformed", b64(cookie)],
        ["payload of 4 GiB claimed", "Malformed", b64(huge)],
        ["no padding", "Base64", good.rstrip("=")[:-1]],
        ["low of 1000", "Bounds", pack([], 3, low=1000, numbers=[])],
        ["low of 0", "Bounds", pack([], 3, low=0, numbers=[])],
        ["5 digits", "Bounds", pack([], 5, numbers=[])],
        ["0 digits", "Bounds", pack([], 0, numbers=[])],
        ["2^32 - 1 digits", "Bounds", pack([], 2**32 - 1, numbers=[])],
        ["high of 2^63", "Bounds", pack([], 3, high=2**63, numbers=[])],
        ["high of 1", "Bounds", pack([], 3, high=1, numbers=[])],
        ["ratio of 2", "Malformed", pack([], 3, ratio=2.0, numbers=[1])],
        ["ratio of NaN", "Malformed", pack([], 3, ratio=float("nan"), numbers=[1])],
        ["run of 2^63 zeros", "Malformed", pack([], 3, numbers=[-(2**63), -(2**63), -(2**63), 1])],
        ["bucket beyond a day", "Malformed", pack([], 3, numbers=[-38_912, 1])],
        ["bucket beyond 2^64", "Malformed", pack([], 3, numbers=[-(60 * 1024), 1])],
        ["count of 2^62", "TooManyValues", pack([], 3, numbers=[2**62])],
        ["sum beyond 2^53", "TooManyValues", pack([], 3, numbers=[2**53, 1])],
        ["number cut short", "Malformed", cut_number()],
    ]


def cut_number():
    head = struct.pack(">IIIIQQd", 0x1C849313, 2, 0, 3, 1, HOUR_NS, 1.0)
    packed = zlib.compress(head + b"\x80\x80")
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(packed)) + packed).decode()


VECTORS = {
    "normal": normal(),
    "student": student(),
    "holm": holm(),
    "rankings": rankings(),
    "changes": changes(),
    "trends": trends(),
    "typical": typical(),
    "quantiles": quantiles(),
    "histograms": histograms(),
    "hostile": hostile(),
}
path = pathlib.Path(__file__).with_name("vectors.json")
lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in VECTORS.items())
path.write_text("{\n" + lines + "\n}\n")
