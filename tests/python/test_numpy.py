"""The operations on NumPy arrays, against float64."""

import numpy
import pytest
import reference

import logpjit


def close(found, right, atol=2e-6, rtol=1e-6):
    assert found.dtype == numpy.float32
    numpy.testing.assert_allclose(found, right, rtol=rtol, atol=atol)


@pytest.fixture(scope="module")
def random():
    return numpy.random.default_rng(7)


def logits_of(random, *shape):
    return (random.standard_normal(shape) * 4).astype(numpy.float32)


def picked(logits, ids):
    flat = logits.reshape(-1, logits.shape[-1]).astype(numpy.float64)
    many = ids.reshape(len(flat), -1)
    rows = [[reference.logp(r, i) for i in ids] for r, ids in zip(flat, many)]
    return numpy.array(rows).reshape(ids.shape)


def test_readme_example():
    logits = numpy.array([[0, 0, 0, 0], [0, 0, 1, 2]], numpy.float32)
    ids = numpy.array([1, 3])
    close(logpjit.logprobs(logits, ids), picked(logits, ids))


@pytest.mark.parametrize("ids_dtype", ["int32", "int64"])
def test_logprobs(random, ids_dtype):
    logits = logits_of(random, 2, 5, 300)
    ids = random.integers(0, 300, (2, 5)).astype(ids_dtype)
    ids[0, 1], ids[1, 4] = -100, 300
    found = logpjit.logprobs(logits, ids)
    close(found, picked(logits, ids))
    assert found[0, 1] == 0 and found[1, 4] == 0


def test_half_precision_gives_the_bits_of_equal_fp32_values(random):
    logits = logits_of(random, 6, 300).astype(numpy.float16)
    ids = random.integers(0, 300, 6)
    found = logpjit.logprobs(logits, ids)
    wide = logpjit.logprobs(logits.astype(numpy.float32), ids)
    numpy.testing.assert_array_equal(found, wide)
    close(found, picked(logits, ids))


def test_views_are_read_in_place(random):
    store = logits_of(random, 2, 6, 300)
    store[:, -1] = numpy.nan
    ids = random.integers(0, 300, (2, 5))
    found = logpjit.logprobs(store[:, :-1], ids)
    close(found, picked(store[:, :-1], ids))


def test_many_ids_and_an_ignored_valid_one(random):
    logits = logits_of(random, 4, 300)
    ids = random.integers(1, 300, (4, 3))
    ids[2, 1] = 0
    found = logpjit.logprobs(logits, ids, ignore_index=0)
    ids[2, 1] = -1
    close(found, picked(logits, ids))


def test_all_values_at_once(random):
    logits = logits_of(random, 5, 300)
    ids = random.integers(0, 300, 5)
    names = ("logp", "entropy", "lse", "squares", "argmax")
    found = logpjit.row_values(logits, ids, outputs=names)
    close(found.logp, picked(logits, ids))
    close(found.entropy, reference.per_row(reference.entropy, logits))
    close(found.lse, reference.per_row(reference.lse, logits))
    close(found.squares, reference.per_row(reference.squares, logits))
    numpy.testing.assert_array_equal(found.argmax, logits.argmax(-1))
    logp, entropy = logpjit.logprobs_and_entropy(logits, ids)
    numpy.testing.assert_array_equal(logp, found.logp)
    numpy.testing.assert_array_equal(entropy, found.entropy)
    numpy.testing.assert_array_equal(entropy, logpjit.entropy(logits))


def test_temperature_and_padding(random):
    logits = logits_of(random, 4, 300)
    logits[:, 290:] = numpy.nan
    ids = random.integers(0, 290, 4)
    each = numpy.array([0.5, 1, 2, 3], numpy.float32)
    scaled = logits[:, :290].astype(numpy.float64)
    found = logpjit.logprobs(logits, ids, temperature=1.5, vocab=290)
    close(found, picked(scaled / 1.5, ids))
    found = logpjit.logprobs(logits, ids, temperature=each, vocab=290)
    close(found, picked(scaled / each[:, None], ids))


def test_row_index(random):
    logits = logits_of(random, 6, 300)
    rows, ids = numpy.array([4, 0]), numpy.array([7, 8])
    found = logpjit.logprobs(logits, ids, row_index=rows)
    close(found, picked(logits[rows], ids))


def test_gradient(random):
    logits = logits_of(random, 4, 300)
    ids = random.integers(0, 300, 4)
    ids[1] = -100
    g = random.standard_normal(4).astype(numpy.float32)
    found, gradient = logpjit.logprobs_with_grad(logits, ids, g)
    close(found, picked(logits, ids))
    rows = zip(logits.astype(numpy.float64), ids, g)
    right = [reference.row_gradient(r, [i], [u]) for r, i, u in rows]
    close(gradient, numpy.array(right))
    assert not gradient[1].any()

    total = numpy.ones_like(logits)
    _, same = logpjit.logprobs_with_grad(logits, ids, g, accumulate=total)
    assert same is total
    close(total, numpy.array(right) + 1)
    spent = logits.copy()
    _, same = logpjit.logprobs_with_grad(spent, ids, g, in_place=True)
    assert same is spent
    numpy.testing.assert_array_equal(spent, gradient)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_kl(random, direction):
    student = logits_of(random, 5, 300)
    teacher = logits_of(random, 5, 300)
    sides = (teacher, student) if direction == "forward" else (student, teacher)
    right = reference.per_row(reference.kl, *sides)
    close(logpjit.kl(student, teacher, direction=direction), right)


def test_edge_rows():
    logits = numpy.full((4, 300), -numpy.inf, numpy.float32)
    logits[1, 5] = 3
    logits[2] = 1e8
    logits[3] = numpy.nan
    ids = numpy.array([0, 5, 7, 1])
    logp, entropy = logpjit.logprobs_and_entropy(logits, ids)
    assert numpy.isnan(logp[[0, 3]]).all() and numpy.isnan(entropy[[0, 3]]).all()
    assert logp[1] == 0 and entropy[1] == 0
    close(logp[2:3], [-numpy.log(300)])


def test_no_rows():
    logits = numpy.zeros((0, 300), numpy.float32)
    assert logpjit.logprobs(logits, numpy.zeros(0, numpy.int64)).shape == (0,)
    assert logpjit.entropy(logits).shape == (0,)


LOGITS = numpy.zeros((3, 8), numpy.float32)
IDS = numpy.zeros(3, numpy.int64)


@pytest.mark.parametrize(
    ("kind", "name", "call"),
    [
        (TypeError, "logits", lambda: logpjit.logprobs([[0.0]], IDS)),
        (
            TypeError,
            "logits: dtype float64",
            lambda: logpjit.logprobs(LOGITS.astype("float64"), IDS),
        ),
        (
            TypeError,
            "logits: dtype >f4",
            lambda: logpjit.logprobs(LOGITS.astype(">f4"), IDS),
        ),
        (TypeError, "ids: dtype", lambda: logpjit.logprobs(LOGITS, LOGITS[:, 0])),
        (TypeError, "ids: list", lambda: logpjit.logprobs(LOGITS, [0, 0, 0])),
        (TypeError, "ids: needed", lambda: logpjit.logprobs(LOGITS, None)),
        (ValueError, "ids: shape", lambda: logpjit.logprobs(LOGITS, IDS[:2])),
        (ValueError, "logits: shape", lambda: logpjit.logprobs(LOGITS[0], IDS)),
        (ValueError, "logits: V is 0", lambda: logpjit.entropy(LOGITS[:, :0])),
        (
            ValueError,
            "logits: stride 2 along the vocabulary",
            lambda: logpjit.entropy(LOGITS[:, ::2]),
        ),
        (
            ValueError,
            "temperature",
            lambda: logpjit.entropy(LOGITS, temperature=0),
        ),
        (
            ValueError,
            "temperature",
            lambda: logpjit.entropy(LOGITS, temperature=float("nan")),
        ),
        (
            TypeError,
            "temperature: str",
            lambda: logpjit.entropy(LOGITS, temperature="hot"),
        ),
        (ValueError, "softcap", lambda: logpjit.entropy(LOGITS, softcap=-1)),
        (ValueError, "vocab: 9", lambda: logpjit.entropy(LOGITS, vocab=9)),
        (TypeError, "vocab: float", lambda: logpjit.entropy(LOGITS, vocab=4.0)),
        (
            TypeError,
            "row_index: dtype",
            lambda: logpjit.entropy(LOGITS, row_index=IDS.astype("int32")),
        ),
        (
            ValueError,
            "outputs: 'lgop'",
            lambda: logpjit.row_values(LOGITS, IDS, outputs=("lgop",)),
        ),
        (ValueError, "in_place", lambda: logpjit.entropy(LOGITS, in_place=True)),
        (
            TypeError,
            "upstream: dtype",
            lambda: logpjit.logprobs_with_grad(LOGITS, IDS, IDS),
        ),
        (
            ValueError,
            "teacher: shape",
            lambda: logpjit.kl(LOGITS, LOGITS[:, :4]),
        ),
        (
            ValueError,
            "direction: 'up'",
            lambda: logpjit.kl(LOGITS, LOGITS, direction="up"),
        ),
    ],
)
def test_refusals_name_the_argument(kind, name, call):
    loaded = logpjit.counters()["loaded"]
    with pytest.raises(kind, match=name):
        call()
    assert logpjit.counters()["loaded"] == loaded, "something was launched"


def test_validate_names_what_does_not_exist(random):
    logits = logits_of(random, 3, 300)
    ids = numpy.array([0, 300, 7])
    with pytest.raises(ValueError, match="ids.*300"):
        logpjit.logprobs(logits, ids, validate=True)
    with pytest.raises(ValueError, match="row_index.*3"):
        logpjit.entropy(logits, row_index=numpy.array([3]), validate=True)
    ids[1] = -100
    close(logpjit.logprobs(logits, ids, validate=True), picked(logits, ids))
    ids[1] = 7
    found = logpjit.logprobs(logits, ids, validate=True, ignore_index=7)
    assert found[0] != 0 and found[1] == 0 and found[2] == 0


def test_strided_vocabularies_are_copied_when_asked(random):
    logits = logits_of(random, 3, 300)
    ids = random.integers(0, 300, 3)
    across = numpy.asfortranarray(logits)
    upstream = numpy.ones(3, numpy.float32)
    for call in (
        lambda x, **o: [logpjit.logprobs(x, ids, **o)],
        lambda x, **o: logpjit.logprobs_with_grad(x, ids, upstream, **o),
        lambda x, **o: [logpjit.kl(x, logits, **o)],
        lambda x, **o: [logpjit.kl(logits, x, direction="reverse", **o)],
    ):
        with pytest.raises(ValueError, match="stride 3"):
            call(across)
        for one, right in zip(call(across, copy_strided=True), call(logits)):
            numpy.testing.assert_array_equal(one, right)
