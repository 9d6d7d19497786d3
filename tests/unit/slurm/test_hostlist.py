import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_operator.slurm.hostlist import MAX_NAMES, HostlistError, compress, expand

EXPANSIONS = [
    ("", []),
    (",", []),
    ("login", ["login"]),
    ("a1,,b", ["a1", "b"]),
    (" a b\n", ["a", "b"]),
    ("a[1-3]", ["a1", "a2", "a3"]),
    ("a[3,1,2]", ["a3", "a1", "a2"]),
    ("a[1,1,2]", ["a1", "a1", "a2"]),
    ("a[01-3]", ["a01", "a02", "a03"]),
    ("a[8-011]", ["a8", "a9", "a10", "a11"]),
    ("a[098-101]", ["a098", "a099", "a100", "a101"]),
    ("a[1-2,01-02]", ["a1", "a2", "a01", "a02"]),
    ("b[1-2][0-1]", ["b10", "b11", "b20", "b21"]),
    ("n[1,3]-ib[0-1]", ["n1-ib0", "n1-ib1", "n3-ib0", "n3-ib1"]),
    ("a[1-2]b[3-4]c", ["a1b3c", "a1b4c", "a2b3c", "a2b4c"]),
    ("[1-2]", ["1", "2"]),
    ("a[999999999999999999-1000000000000000000]", ["a999999999999999999", "a1000000000000000000"]),
    ("gke-9223372036854775807", ["gke-9223372036854775807"]),
]


@pytest.mark.parametrize(("expression", "names"), EXPANSIONS)
def test_an_expression_expands_to_the_names_that_slurm_gives(expression, names):
    assert expand(expression) == names


REFUSED = [
    ("a[1-3", "brackets do not match"),
    ("a]", "brackets do not match"),
    ("a[[1-2]]", "brackets do not match"),
    ("a[3-1]", "runs backwards"),
    ("a[]", "no number or range"),
    ("a[1,]", "no number or range"),
    ("a[-3]", "no number or range"),
    ("a[x]", "no number or range"),
    ("a[1 - 2]", "no number or range"),
    ("a[1-2-3]", "no number or range"),
    ("a[0x1-0x3]", "no number or range"),
    ("a[\u0661-\u0663]", "no number or range"),
    ("a[1-65537]", "too many names"),
    ("a[0-99999999]", "too many names"),
    ("a[1-300][1-300]", "too many names"),
    ("a[0-9]" * 30, "too many names"),
    ("a," * (MAX_NAMES + 1), "too many names"),
    ("a10000000000000000000000", "too large a number"),
    ("a18446744073709551615", "too large a number"),
    ("a[1-18446744073709551615]", "too large a number"),
    ("a[" + "9" * 10000 + "]", "too large a number"),
    ("a" + "9" * 10000, "too large a number"),
    ("a[1-9]8446744073709551615", "too large a number"),
]


@pytest.mark.parametrize(("expression", "why"), REFUSED, ids=[case[0][:40] for case in REFUSED])
def test_an_expression_that_slurm_would_misread_or_that_is_too_large_is_refused(expression, why):
    with pytest.raises(HostlistError, match=why) as refused:
        expand(expression)

    assert len(str(refused.value)) < 300


COMPRESSIONS = [
    ([], ""),
    (["login"], "login"),
    (["a3", "a1", "a2", "a1"], "a[1-3]"),
    (["a9", "a10", "a11"], "a[9-11]"),
    (["a09", "a10", "a11"], "a[09-11]"),
    (["a9", "a09", "a10"], "a[9,09-10]"),
    (["a99", "a100"], "a[99-100]"),
    (["a1", "a01", "a2", "a02"], "a[1-2,01-02]"),
    (["a0", "a00", "a000"], "a[0,00,000]"),
    (["b1", "a1", "b2"], "a1,b[1-2]"),
    (["a", "a1"], "a,a1"),
    (["a", "a1", "a2"], "a,a[1-2]"),
    (["a1b", "a2b"], "a1b,a2b"),
    (["a1b1", "a1b2", "a2b1", "a2b2"], "a1b[1-2],a2b[1-2]"),
    (["1", "2", "3"], "[1-3]"),
    (["gpu-0", "gpu-2", "cpu-7"], "cpu-7,gpu-[0,2]"),
    (["a9999999999999999998", "a9999999999999999999"], "a[9999999999999999998-9999999999999999999]"),
]


@pytest.mark.parametrize(("names", "expression"), COMPRESSIONS)
def test_names_compress_to_one_sorted_expression(names, expression):
    assert compress(names) == expression
    assert sorted(expand(expression)) == sorted(set(names))


@pytest.mark.parametrize("name", ["", "a b", "a,b", "a[1]", "a]", "a18446744073709551615"])
def test_a_name_that_cannot_stand_in_a_hostlist_is_refused(name):
    with pytest.raises(HostlistError):
        compress([name])


def test_no_range_is_longer_than_slurm_takes():
    names = [f"n{number}" for number in range(MAX_NAMES + 10)]

    assert compress(names) == f"n[0-{MAX_NAMES - 1},{MAX_NAMES}-{MAX_NAMES + 9}]"


PREFIXES = st.from_regex(r"[a-z]([a-z0-9-]{0,6}[a-z-])?", fullmatch=True)
NAMES = st.one_of(
    PREFIXES,
    st.builds("{}{}".format, PREFIXES, st.integers(0, 300)),
    st.builds("{}{:03d}".format, PREFIXES, st.integers(0, 1100)),
    st.builds("{}{}-{:02d}x".format, PREFIXES, st.integers(0, 20), st.integers(0, 120)),
    st.builds("{}{}".format, PREFIXES, st.integers(10**17, 2**64 - 2)),
)


@given(st.lists(NAMES, max_size=60))
def test_what_is_compressed_expands_to_the_same_names(names):
    expanded = expand(compress(names))

    assert sorted(expanded) == sorted(set(names))
    assert compress(expanded) == compress(names)


@given(st.text(alphabet="ab019-[], \n", max_size=40))
def test_any_text_expands_or_is_refused_but_never_breaks(text):
    try:
        names = expand(text, limit=1000)
    except HostlistError:
        return
    assert len(names) <= 1000
    assert sorted(expand(compress(names))) == sorted(set(names))
