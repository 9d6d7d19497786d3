from slurm_operator.slurmsync.pending_writes import MESSAGE_TIMEOUT_SECONDS, SETTLE_SECONDS, Ledger


def test_a_node_is_behind_until_it_is_read_after_the_write() -> None:
    ledger = Ledger()
    ledger.begin(["a", "b"])
    assert ledger.read(began_at=1, ended_at=2) == frozenset()
    ledger.end(["a", "b"], at=3, sure=True)

    assert ledger.read(began_at=2.9, ended_at=4) == frozenset()
    assert ledger.behind == {"a", "b"}
    assert ledger.read(began_at=3, ended_at=4) == {"a", "b"}
    assert ledger.behind == frozenset()


def test_a_second_write_keeps_a_node_behind() -> None:
    ledger = Ledger()
    ledger.begin(["a"])
    ledger.begin(["a"])
    ledger.end(["a"], at=1, sure=True)

    assert ledger.read(began_at=2, ended_at=3) == frozenset()
    ledger.end(["a"], at=4, sure=True)
    assert ledger.read(began_at=5, ended_at=6) == {"a"}


def test_a_write_without_an_answer_may_come_true_after_the_next_read() -> None:
    ledger = Ledger()
    ledger.begin(["a"])
    ledger.end(["a"], at=10, sure=False)

    assert ledger.is_unsure(["x", "a"])
    assert ledger.read(began_at=100, ended_at=101) == frozenset(), "slurmctld has only just woken up"
    assert ledger.read(began_at=101 + SETTLE_SECONDS - 0.1, ended_at=105) == frozenset()
    assert ledger.read(began_at=101 + SETTLE_SECONDS, ended_at=106) == {"a"}
    assert not ledger.has_unsure


def test_a_write_without_an_answer_may_come_true_within_slurms_message_timeout() -> None:
    """Also when slurmctld answers everything else: it may be carried out late, or once more."""
    ledger = Ledger()
    ledger.begin(["a"])
    ledger.end(["a"], at=10, sure=False)
    for second in range(11, 11 + int(MESSAGE_TIMEOUT_SECONDS)):
        assert ledger.read(began_at=second - 1, ended_at=second) == frozenset()

    after = 10 + MESSAGE_TIMEOUT_SECONDS
    assert ledger.read(began_at=after, ended_at=after + 1) == {"a"}


def test_a_refusal_is_an_answer_and_nothing_comes_of_it_later() -> None:
    ledger = Ledger()
    ledger.begin(["a"])
    ledger.end(["a"], at=10, sure=False, is_answered=True)

    assert ledger.read(began_at=10, ended_at=11) == frozenset(), "what we had read was wrong"
    assert ledger.read(began_at=11 + SETTLE_SECONDS, ended_at=15) == {"a"}


def test_a_later_answer_does_not_make_an_unanswered_write_sure() -> None:
    ledger = Ledger()
    ledger.begin(["a"])
    ledger.end(["a"], at=10, sure=False)
    ledger.begin(["a"])
    ledger.end(["a"], at=11, sure=True)

    assert ledger.is_unsure(["a"])
    assert ledger.read(began_at=12, ended_at=13) == frozenset()
