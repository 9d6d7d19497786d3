"""What every answer of slurmrestd has around its content."""

from slurm_operator import wire
from slurm_operator.slurmrest.answers.values import Number, Text


class Trouble(wire.Record):
    """One entry of `errors` or `warnings`."""

    error_number: int | None = None
    error: Text = None
    description: Text = None
    source: Text = None


class SlurmMeta(wire.Record):
    cluster: Text = None
    release: Text = None


class Meta(wire.Record):
    slurm: SlurmMeta | None = None


class Envelope(wire.Record):
    """The part that says whether the content can be trusted: only when `errors` is empty."""

    errors: list[Trouble] | None = None
    warnings: list[Trouble] | None = None
    meta: Meta | None = None
    last_update: Number = None

    @property
    def cluster(self) -> str:
        return (self.meta and self.meta.slurm and self.meta.slurm.cluster) or ""

    @property
    def release(self) -> str:
        return (self.meta and self.meta.slurm and self.meta.slurm.release) or ""


class _Coded(wire.Record):
    code: int | None = None
    string: Text = None
    message: Text = None


class _JobStatus(wire.Record):
    """Of a job that is killed the error has parts; of a task that is requeued its number stands beside it."""

    error: _Coded | Text = None
    error_code: int | None = None

    @property
    def code_and_text(self) -> tuple[int | None, Text]:
        if isinstance(self.error, _Coded):
            return self.error.code, self.error.string
        return self.error_code, self.error


class _JobResult(wire.Record):
    error_code: int | None = None
    error: Text = None
    why: Text = None


class JobReply(Envelope):
    """What became of each job of a request. An unknown job is told here, while `errors` stays empty."""

    status: list[_JobStatus] | None = None
    results: list[_JobResult] | None = None

    @property
    def troubles(self) -> list[Trouble]:
        ended = [found.code_and_text for found in self.status or ()]
        changed = [(found.error_code, found.error or found.why) for found in self.results or ()]
        return [Trouble(error_number=code, error=text) for code, text in ended + changed if code]


def troubles_text(troubles: list[Trouble]) -> str:
    """Slurm's own words, with its error numbers."""
    return "; ".join(map(_one, troubles)) or "no reason given"


def _one(trouble: Trouble) -> str:
    parts = [part for part in (trouble.error, trouble.description) if part and part != "No error"]
    mark = f" (error {trouble.error_number})" if trouble.error_number else ""
    return (": ".join(parts) or "an error without a name") + mark
