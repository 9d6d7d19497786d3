"""Whatever people write into annotations and files: understood, or refused by the error made for it."""

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_operator.slurm.conf import topology_yaml
from slurm_operator.slurm.conf.lines import parse
from slurm_operator.slurm.features import features_text, kube_features
from slurm_operator.slurm.hostlist import HostlistError, compress, expand
from slurm_operator.slurm.reasons import MAX_REASON_CHARACTERS, OurReason, is_our_reason
from slurm_operator.slurm.topology import TopologyError, places
from slurm_operator.slurm.tres import TresError, gres, tres

words = st.text(st.characters(codec="utf-8"), max_size=40)
hostlists = st.text(st.sampled_from("ab01-,[] 9"), max_size=24)


@settings(max_examples=400)
@given(hostlists)
def test_any_hostlist_is_expanded_or_refused(text: str) -> None:
    try:
        names = expand(text)
    except HostlistError:
        return
    assert sorted(set(expand(compress(names)))) == sorted(set(names))


@given(words)
def test_any_topology_annotation_is_places_or_refused(text: str) -> None:
    with contextlib.suppress(TopologyError):
        places(text)


@given(words)
def test_any_feature_annotation_gives_features_with_our_prefix(text: str) -> None:
    assert all(name.startswith("k8s/") for name in kube_features(features_text(kube_features(text))))


@given(words, words, st.text(st.sampled_from("0123456789abcdef-"), max_size=36))
def test_any_cause_makes_a_reason_that_is_ours_and_fits(cause: str, text: str, uid: str) -> None:
    reason = str(OurReason(cause=cause, text=text, pod_uid=uid))

    assert is_our_reason(reason + " ")
    assert len(reason) <= MAX_REASON_CHARACTERS
    assert "\n" not in reason


@given(st.text(st.sampled_from("gpu:=,()SIDX0123-[]kMG/ "), max_size=30))
def test_any_resources_are_counted_or_refused(text: str) -> None:
    for read in (gres, tres):
        with contextlib.suppress(TresError):
            read(text)


@given(words)
def test_any_text_is_a_file_of_settings_and_problems(text: str) -> None:
    conf = parse(text, "slurm.conf")

    assert all(problem.file == "slurm.conf" for problem in conf.problems)


@settings(deadline=None)
@given(st.one_of(words, st.text(st.sampled_from("-:[]{}&*!\n abc'\""), max_size=40)))
def test_any_topology_file_has_problems_or_none(text: str) -> None:
    assert all(str(problem) for problem in topology_yaml.problems(text))
