import pytest

from slurm_operator.kube.errors import Forbidden, ServerError, Status, Unreachable
from slurm_operator.runtime.act.stages import ActionFailed, NotSentToSlurm
from slurm_operator.runtime.loop.retries import Retries

BUSY = ServerError(Status(code=503, reason="ServiceUnavailable", message="busy"))


class Attempts:
    """Fails with these errors, one after the other, and then works."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.made = 0

    async def __call__(self) -> None:
        self.made += 1
        if self.errors:
            raise self.errors.pop(0)


async def test_what_fails_for_a_moment_is_tried_again():
    attempt = Attempts(
        BUSY, Unreachable("no connection"), NotSentToSlurm("cannot reach Slurm to drain gpu-3")
    )

    await Retries(most=3, interval_seconds=0).of(attempt)

    assert attempt.made == 4


async def test_after_the_last_try_the_error_stands():
    attempt = Attempts(BUSY, BUSY, BUSY)

    with pytest.raises(ServerError):
        await Retries(most=2, interval_seconds=0).of(attempt)

    assert attempt.made == 3


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Forbidden(Status(code=403, message="no")), id="a clear no"),
        pytest.param(Unreachable("cut off", may_have_happened=True), id="it may have happened"),
        pytest.param(
            ServerError(Status(code=504, reason="Timeout")), id="the server gave up, etcd may not have"
        ),
        pytest.param(ServerError(Status(code=503, message="upstream reset")), id="what a proxy cannot know"),
        pytest.param(ActionFailed("no answer in time from Slurm"), id="Slurm may have done it"),
    ],
)
async def test_what_another_try_cannot_mend_or_might_do_twice_is_not_tried_again(error):
    attempt = Attempts(error)

    with pytest.raises(type(error)):
        await Retries(most=5, interval_seconds=0).of(attempt)

    assert attempt.made == 1


async def test_by_default_the_next_pass_tries_again():
    attempt = Attempts(BUSY)

    with pytest.raises(ServerError):
        await Retries().of(attempt)

    assert attempt.made == 1
