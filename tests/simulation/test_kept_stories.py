"""Stories in which a promise was once broken, as short as they could be made."""

import pytest

from simulation.deeds import Happening
from simulation.runs import Story, play
from simulation.scenes import CLUSTER, PARTS, SLURMCLUSTER, Scene


def workers(replicas: int) -> Scene:
    return Scene(nodeset=(("replicas", replicas),))


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(
            Story(
                seed=358,
                scene=workers(4),
                happenings=(
                    Happening(2.0, "submit", 11, 3),
                    Happening(2.7, "change_image", 2, 26),
                    Happening(3.5, "submit", 1, 31),
                ),
            ),
            id="a job ends while an update drains: the next victim waits for the budget",
        ),
        pytest.param(
            Story(
                seed=1,
                roughness=0.02,
                scene=workers(3),
                happenings=(
                    Happening(84.4, "crash_operator", 10, 6),
                    Happening(6.0, "change_resources", 1, 47),
                    Happening(34.8, "fail_worker", 6, 41),
                ),
            ),
            id="a worker fails while resources change: its successor gets a record that fits",
        ),
        pytest.param(
            Story(
                seed=3,
                roughness=0.02,
                scene=workers(2),
                happenings=(
                    Happening(7.3, "change_resources", 3, 40),
                    Happening(5.6, "drain", 0, 42),
                    Happening(25.1, "scale", 6, 25),
                ),
            ),
            id="slurmctld drained it, then it is scaled in: its record goes along",
        ),
        pytest.param(
            Story(
                seed=162,
                roughness=0.08,
                scene=workers(4),
                happenings=(Happening(132.1, "switch_mode", 3, 21), Happening(1.0, "fail_worker", 9, 16)),
            ),
            id="a worker fails while the mode is switched: its record goes in the new mode",
        ),
        pytest.param(
            Story(
                seed=51,
                scene=workers(2),
                happenings=(
                    Happening(4.0, "drain", 0, 1),
                    Happening(6.0, "lose_machine", 0, 25),
                    Happening(30.0, "change_image", 0, 5),
                    Happening(40.0, "calm"),
                ),
            ),
            id="a human's drain without a reason stands, though slurmctld gave it one",
        ),
        pytest.param(
            Story(
                seed=51,  # An odd one: there Slurm keeps DOWN what it has given up.
                scene=workers(5),
                happenings=(
                    Happening(10.0, "lose_machine", 0, 25),
                    Happening(40.0, "submit", 0, 5),
                    Happening(1.0, "change_image", 0, 5),
                    Happening(1.0, "lose_machine", 1, 25),
                    Happening(60.0, "calm"),
                ),
            ),
            id="lost workers take jobs again, though Slurm keeps their records DOWN",
        ),
        pytest.param(
            Story(
                seed=5042,
                roughness=0.02,
                scene=workers(2),
                happenings=(
                    Happening(32.8, "switch_mode", 2, 15),
                    Happening(1.0, "cordon", 11, 53),
                    Happening(7.4, "drain", 5, 52),
                    Happening(46.9, "change_resources", 7, 14),
                    Happening(0.3, "cut_off_machine", 9, 22),
                    Happening(37.5, "requeue", 7, 38),
                ),
            ),
            id="and it stands when its worker has to go for other resources",
        ),
        pytest.param(
            Story(
                seed=140,
                scene=Scene(nodeset=(("replicas", 1), ("scalingMode", "DaemonSet"))),
                happenings=(
                    Happening(31.2, "lose_machine", 7, 38),
                    Happening(3.6, "cut_off_machine", 4, 49),
                    Happening(2.2, "cordon", 4, 27),
                    Happening(2.2, "fail_worker", 5, 48),
                    Happening(2.0, "submit", 4, 52),
                    Happening(3.0, "switch_mode", 3, 34),
                ),
            ),
            id="a job starts in a pod before its kubelet has reported: it has not been never started",
        ),
        pytest.param(
            Story(
                seed=39,
                scene=Scene(nodeset=(("replicas", 2), ("scalingMode", "DaemonSet"))),
                happenings=(
                    Happening(20.6, "cordon", 9, 48),
                    Happening(33.4, "change_image", 11, 15),
                    Happening(13.5, "switch_mode", 0, 6),
                ),
            ),
            id="a cordoned machine lost its worker before workers got numbers: its record goes",
        ),
        pytest.param(
            Story(
                seed=150,
                scene=Scene(
                    PARTS,
                    nodeset=(("replicas", 3), ("scalingMode", "DaemonSet")),
                    accounting="managed",
                    is_persistent=False,
                ),
                happenings=(
                    Happening(2.1, "rotate_signing_key", 2, 52),
                    Happening(2.9, "delete_child", 10, 19),
                    Happening(37.4, "delete_kind", 9, 1),
                    Happening(4.5, "crash_operator", 7, 10),
                    Happening(4.7, "drain", 0, 32),
                    Happening(1.8, "submit_array", 1, 34),
                    Happening(61.7, "fail_daemon", 9, 15),
                ),
            ),
            id="a NodeSet is deleted whose workers are idle: its partition takes no more jobs before it goes",
        ),
        pytest.param(
            Story(
                seed=6394,
                scene=Scene(PARTS, nodeset=(("replicas", 3), ("scalingMode", "DaemonSet")), has_token=False),
                happenings=(Happening(5.4, "edit_config", 10, 32), Happening(11.2, "lose_state", 6, 17)),
            ),
            id="slurmctld ended before it could read new files: they are not put back for that",
        ),
        pytest.param(
            Story.of(2832),
            id="a job insists on a node since Slurm was last heard: its record stays",
        ),
        pytest.param(
            Story(
                seed=2,
                scene=Scene(PARTS, accounting="managed", has_login=False, has_token=False),
                happenings=(Happening(70.0, "lose_key", 0), Happening(25.0, "lose_key", 2)),
            ),
            id="somebody deletes the key of an Accounting, then the password of its database: none is made again",
        ),
        pytest.param(
            Story(
                seed=3159,
                scene=workers(4),
                happenings=(
                    Happening(2.5, "stop_operator", 3, 54),
                    Happening(3.8, "change_image", 0, 50),
                    Happening(1.6, "lose_machine", 2, 51),
                    Happening(14.6, "submit", 11, 29),
                ),
            ),
            id="a worker that was away comes back before it is drained for an update: it waits for its turn",
        ),
        pytest.param(
            Story(
                seed=4667,
                roughness=0.02,
                scene=workers(1),
                happenings=(
                    Happening(9.0, "change_image", 4, 34),
                    Happening(6.2, "lose_slurmrestd", 9, 11),
                    Happening(5.0, "submit", 7, 33),
                    Happening(14.1, "hang_slurmctld", 2, 56),
                    Happening(13.3, "hang_slurmctld", 5, 29),
                    Happening(5.3, "scale", 2, 9),
                    Happening(2.1, "change_resources", 3, 30),
                ),
            ),
            id="a pod that is asked to end waits for the epilog of its last job",
        ),
        pytest.param(
            Story(
                seed=21909,
                scene=Scene(
                    name=CLUSTER,
                    nodeset=(("replicas", 3),),
                    accounting="elsewhere",
                    is_persistent=True,
                    has_token=True,
                ),
                happenings=(Happening(33.8, "scale_restapi", 11, 39),),
            ),
            id="one more slurmrestd in a Cluster: the one there is stays",
        ),
        pytest.param(
            Story(
                seed=1375,
                roughness=0.02,
                scene=Scene(nodeset=(("replicas", 3), ("scalingMode", "DaemonSet"))),
                happenings=(
                    Happening(4.4, "break_image", 9, 2),
                    Happening(17.4, "hang_slurmctld", 7, 19),
                    Happening(5.1, "change_image", 1, 10),
                    Happening(17.8, "cordon_pod", 9, 37),
                    Happening(37.8, "submit", 10, 29),
                ),
            ),
            id="a worker is cordoned while its node is down for the one before: it comes back afterwards",
        ),
        pytest.param(
            Story(
                seed=5226,
                roughness=0.02,
                scene=Scene(nodeset=(("replicas", 2), ("pinToNode", True))),
                happenings=(
                    Happening(1.7, "change_image", 1, 35),
                    Happening(4.8, "taint", 9, 21),
                    Happening(1.4, "taint", 6, 41),
                    Happening(0.1, "cordon_pod", 11, 48),
                    Happening(5.3, "scale", 9, 19),
                    Happening(7.9, "cut_off_machine", 10, 35),
                    Happening(90.1, "taint", 6, 42),
                ),
            ),
            id="another number takes the machine for which a pinned worker waits: it goes elsewhere",
        ),
        pytest.param(
            Story(
                seed=111,
                roughness=0.02,
                steps=True,
                scene=Scene(PARTS, nodeset=(("replicas", 2),), has_login=False, has_token=True),
                happenings=(
                    Happening(14.3, "crash_daemon", 7, 26),
                    Happening(2.6, "uncordon_pod", 4, 6),
                    Happening(5.4, "lose_state", 8, 51),
                    Happening(0.1, "crash_operator", 10, 56),
                    Happening(16.2, "cordon_pod", 7, 54),
                    Happening(4.2, "break_workers", 9, 9),
                    Happening(6.4, "delete_pod", 10, 48),
                    Happening(3.2, "delete_child", 0, 23),
                    Happening(2.7, "insist", 2, 37),
                    Happening(2.3, "calm", 7, 0),
                    Happening(25.6, "edit_child", 3, 8),
                    Happening(4.6, "rotate_slurm_key", 8, 36),
                ),
            ),
            id="the operator's clock is set forward while kubelets bring a new key: it signs when all have it",
        ),
        pytest.param(
            Story(
                seed=171,
                roughness=0.0,
                scene=Scene(SLURMCLUSTER, nodeset=(("replicas", 4),), is_persistent=False),
                happenings=(
                    Happening(1.0, "submit", 3, 9),
                    Happening(4.6, "scale", 3, 51),
                    Happening(0.4, "taint", 10, 20),
                ),
            ),
            id="a worker of a SlurmCluster makes the record again that was deleted before it came: it goes, too",
        ),
        pytest.param(
            Story(
                seed=310061,
                scene=Scene(SLURMCLUSTER, nodeset=(("replicas", 4),), is_persistent=False),
                happenings=(
                    Happening(57.6, "submit", 4, 23),
                    Happening(3.3, "fail_to_kill", 1, 41),
                    Happening(33.5, "scale", 4, 55),
                ),
            ),
            id="a worker that a node controller drained for a reboot is scaled in: its record goes along",
        ),
    ],
)
def test_a_promise_that_was_broken_once_is_kept(story):
    assert play(story).broken is None
