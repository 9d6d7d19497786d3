import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_operator.slurm import features, topology, tres
from slurm_operator.slurm.topology import Place, TopologyError
from slurm_operator.slurm.tres import MIB, Gres, TresError


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("", {}),
        ("cpu=2,mem=24103M,billing=2", {"cpu": 2, "mem": 24103 * MIB, "billing": 2}),
        ("cpu=1,mem=500,node=1", {"cpu": 1, "mem": 500 * MIB, "node": 1}),
        ("mem=1.50G,gres/gpu:h100=8", {"mem": 1536 * MIB, "gres/gpu:h100": 8}),
        ("gres/nvme=2T", {"gres/nvme": 2 * 2**40}),
    ],
)
def test_trackable_resources_are_read_with_memory_in_bytes(text, amounts):
    assert tres.tres(text) == amounts


@pytest.mark.parametrize("text", ["cpu", "cpu=", "=2", "cpu=x", "cpu=-1", "mem=5X", "cpu=2 mem=3"])
def test_what_is_no_list_of_resources_is_refused(text):
    with pytest.raises(TresError):
        tres.tres(text)


@given(
    st.dictionaries(
        st.sampled_from(["cpu", "mem", "node", "gres/gpu", "gres/gpu:a100"]), st.integers(0, 2**40)
    )
)
def test_written_resources_are_read_back(amounts):
    whole = {name: amount * MIB if name == "mem" else amount for name, amount in amounts.items()}

    assert tres.tres(tres.written_tres(whole)) == whole


GRES = [
    ("", []),
    ("(null)", []),
    ("N/A", []),
    ("gpu", [Gres("gpu")]),
    ("gpu:8", [Gres("gpu", count=8)]),
    ("gpu:h100:8", [Gres("gpu", "h100", 8)]),
    ("gpu:h100", [Gres("gpu", "h100")]),
    ("gpu:h100:8(S:0-1)", [Gres("gpu", "h100", 8, sockets="0-1")]),
    ("gpu:h100:2(IDX:0,2),nvme:1T", [Gres("gpu", "h100", 2, indices="0,2"), Gres("nvme", count=2**40)]),
    ("gpu:3g.20gb:2", [Gres("gpu", "3g.20gb", 2)]),
    ("gpu:1g.5gb", None),
    ("gres/gpu:h100=2", [Gres("gpu", "h100", 2)]),
    ("gres:gpu:2", [Gres("gpu", count=2)]),
    ("bandwidth:lustre:no_consume:4G", [Gres("bandwidth", "lustre", 4 * 2**30, no_consume=True)]),
    ("license:no_consume:4", [Gres("license", count=4, no_consume=True)]),
    ("gpu:x:y:z", None),
    ("gpu:8:h100", None),
    (":8", None),
]


@pytest.mark.parametrize(("text", "entries"), GRES)
def test_generic_resources_are_read_in_each_of_slurms_forms(text, entries):
    if entries is None:
        with pytest.raises(TresError, match="name"):
            tres.gres(text)
    else:
        assert tres.gres(text) == entries
        assert tres.gres(",".join(map(str, entries))) == entries


def test_generic_resources_are_counted_whatever_their_type():
    assert tres.gres_counts(tres.gres("gpu:a100:2,gpu:h100:6,nvme:1")) == {"gpu": 8, "nvme": 1}


@pytest.mark.parametrize(
    ("current", "annotation", "wanted"),
    [
        (["gpu"], "zone-a, fast ,zone-a", ("gpu", "k8s/fast", "k8s/zone-a")),
        (["gpu", "k8s/old"], "new", ("gpu", "k8s/new")),
        (["gpu", "k8s/old"], None, ("gpu",)),
        (["gpu", "k8s/old"], "", ("gpu",)),
        (["b", "a"], None, ("a", "b")),
        (["gpu"], "k8s/new", ("gpu", "k8s/new")),
    ],
)
def test_only_features_with_our_prefix_follow_the_annotation(current, annotation, wanted):
    assert features.with_kube_features(current, annotation) == wanted


def test_features_are_read_and_written_sorted_and_once():
    assert features.features(" b,a,,b ") == ("a", "b")
    assert features.features_text(["b", "a", "b"]) == "a,b"
    assert features.are_same(["a", "b"], ["b", "a", "a"])


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("", ()),
        ("default:sw1", (Place("default", ("sw1",)),)),
        ("tree:root:sw1,blocks:b7", (Place("tree", ("root", "sw1")), Place("blocks", ("b7",)))),
    ],
)
def test_a_nodes_places_are_read(text, places):
    assert topology.places(text) == places


@pytest.mark.parametrize(
    "text", ["sw1", "default:", ":sw1", "a:b,a:c", "default:s w", "default:s[1-2]", 'a:"b"']
)
def test_what_is_no_place_is_refused(text):
    with pytest.raises(TopologyError):
        topology.places(text)


NAMES = st.from_regex(r"[a-z0-9_.-]{1,8}", fullmatch=True)


@given(st.dictionaries(NAMES, st.lists(NAMES, min_size=1, max_size=4), max_size=4))
def test_written_places_are_read_back(units):
    places = {Place(name, tuple(path)) for name, path in units.items()}

    assert set(topology.places(",".join(map(str, places)))) == places
    assert topology.are_same(",".join(map(str, sorted(places))), ",".join(map(str, places)))
