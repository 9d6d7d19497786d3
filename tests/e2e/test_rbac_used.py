"""After everything else: the operator used all the rights that it has."""

from support import rights


def test_every_right_of_the_operator_was_used_by_something():
    """Rights that nothing needs are rights that somebody else may use. See also that none was missing, per server."""
    used = set().union(*(rights.uses(rights.requests(log)) for log in rights.LOGS))

    assert used - rights.granted() == set()
    assert sorted(use for use in rights.granted() - used if not rights.is_rare(use)) == []
