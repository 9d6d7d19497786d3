"""Command lines as pods write them."""

import pytest

from images.entry.options import argument_words, machine, resource_items, with_node_items, words

MACHINE = {"CPUs": "16", "ThreadsPerCore": "2", "RealMemory": "64000"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["-Z"], ["-Z"], id="a plain word"),
        pytest.param(
            ["--conf", "'Features=gpu Topology='\"$PLACE\"' Weight=10'"],
            ["--conf", "Features=gpu Topology=default:sw1 Weight=10"],
            id="written for a shell: quotes go, variables are filled in",
        ),
        pytest.param(
            ["--conf", "Features=gpu Weight=10"],
            ["--conf", "Features=gpu Weight=10"],
            id="one argument with a space stays one word",
        ),
        pytest.param(
            ["--conf", "'Features=gpu Reason=$PLACE'"],
            ["--conf", "Features=gpu Reason=$PLACE"],
            id="between single quotes a variable is text",
        ),
        pytest.param(
            ["'a'\\''b '\"\\$PLACE $PLACE\"\\ c"],
            ["a'b $PLACE default:sw1 c"],
            id="escaped: as it is written",
        ),
        pytest.param(
            ["'Reason='$'\\x22''two words'$'\\x22'"], ['Reason="two words"'], id="spelled by number"
        ),
        pytest.param(["-a '' -b"], ["-a", "", "-b"], id="quotes around nothing are a word"),
        pytest.param(["-N name -vv"], ["-N", "name", "-vv"], id="options in one argument are taken apart"),
        pytest.param(["${PLACE}"], ["default:sw1"], id="a variable in braces"),
        pytest.param(["$UNKNOWN"], [""], id="an unknown variable is empty, as in a shell"),
    ],
)
def test_arguments_are_read_as_their_pods_mean_them(arguments, expected):
    assert argument_words(arguments, {"PLACE": "default:sw1"}) == expected


def test_an_option_variable_is_split_into_words():
    assert words("-v --conf 'A=1 B=2'", {}) == ["-v", "--conf", "A=1 B=2"]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({}, {}, id="no limits: the whole machine"),
        pytest.param({"POD_CPUS": "0", "POD_MEMORY": "0"}, {}, id="zero means no limit"),
        pytest.param({"POD_CPUS": "4"}, {"CoreSpecCount": "6"}, id="two cores of eight are the pod's"),
        pytest.param({"POD_CPUS": "1"}, {"CoreSpecCount": "7"}, id="less than a core is still one"),
        pytest.param({"POD_CPUS": "16"}, {}, id="all cores are the pod's"),
        pytest.param({"POD_CPUS": "64"}, {}, id="more than there is"),
        pytest.param({"POD_MEMORY": "4000"}, {"MemSpecLimit": "60000"}, id="the rest of the memory"),
        pytest.param({"POD_TOPOLOGY": "default:sw2"}, {"Topology": "default:sw2"}, id="its place"),
        pytest.param({"SLINKY_TOPOLOGY": "default:sw3"}, {"Topology": "default:sw3"}, id="its other name"),
        pytest.param({"POD_CPUS": "lots"}, {}, id="not a number: as if it were not there"),
    ],
)
def test_what_is_not_the_pods_is_set_aside(environment, expected):
    assert resource_items(environment, MACHINE) == expected


LIMITED = {"POD_CPUS": "6", "POD_MEMORY": "12000"}
BEYOND = {"CoreSpecCount": "5", "MemSpecLimit": "52000"}  # of the MACHINE with these limits


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        pytest.param("Features=gpu", BEYOND, id="nothing about resources: as the machine is"),
        pytest.param("CPUs=6 RealMemory=12000", {}, id="just what the pod has: nothing is set aside twice"),
        pytest.param("cpus=8 realmemory=13000", {"CoreSpecCount": "2", "MemSpecLimit": "1000"}, id="more than the pod has"),
        pytest.param("CPUs=4 RealMemory=8000", {}, id="less than the pod has"),
        pytest.param("RealMemory=12000", {"CoreSpecCount": "5"}, id="memory alone: CPUs as the machine has them"),
        pytest.param("CPUs=8 ThreadsPerCore=2", {**BEYOND, "CoreSpecCount": "1"}, id="four cores"),
        pytest.param("Boards=1 SocketsPerBoard=2 CoresPerSocket=4 ThreadsPerCore=2", BEYOND, id="eight cores of two"),
        pytest.param("Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CPUs=8", {**BEYOND, "CoreSpecCount": "2"}, id="eight cores of two threads, each one CPU"),
        pytest.param("CoresPerSocket=4", {"MemSpecLimit": "52000"}, id="one socket of four"),
    ],
)  # fmt: skip
def test_what_is_set_aside_is_counted_by_what_the_worker_says_of_itself(conf, expected):
    assert resource_items(LIMITED, machine(MACHINE, ["-Z", "--conf", conf])) == expected


@pytest.mark.parametrize(
    ("command", "items", "expected"),
    [
        pytest.param(["-Z"], {}, ["-Z"], id="nothing to say"),
        pytest.param(
            ["--conf", "CPUSpecList=0,1"],
            {"CoreSpecCount": "6"},
            ["--conf", "CPUSpecList=0,1"],
            id="which cores are set aside says how many",
        ),
        pytest.param(["-Z"], {"CoreSpecCount": "1"}, ["-Z", "--conf", "CoreSpecCount=1"], id="added"),
        pytest.param(
            ["--conf", "Features=a Topology=", "-Z"],
            {"MemSpecLimit": "5"},
            ["-Z", "--conf", "Features=a MemSpecLimit=5"],
            id="an item without a value goes: slurmd refuses it",
        ),
        pytest.param(
            ["--conf=Topology=default:mine"],
            {"Topology": "default:sw1"},
            ["--conf", "Topology=default:mine"],
            id="what the pod says wins",
        ),
        pytest.param(
            ["--conf", "corespeccount=2"],
            {"CoreSpecCount": "6"},
            ["--conf", "corespeccount=2"],
            id="any case",
        ),
        pytest.param(
            ["--conf-server", "ctld:6817", "--conf", "A=1"],
            {},
            ["--conf-server", "ctld:6817", "--conf", "A=1"],
            id="--conf-server is another option",
        ),
        pytest.param(
            ["--conf", 'Features=a Reason="two words" Weight=3'],
            {},
            ["--conf", 'Features=a Reason="two words" Weight=3'],
            id="a value in quotes stays whole",
        ),
    ],
)
def test_a_worker_describes_itself_in_one_conf_option(command, items, expected):
    assert with_node_items(command, items) == expected
