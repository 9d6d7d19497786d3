"""The certificate of metrics over HTTPS is made where nothing can be written."""

import tempfile

from slurm_operator.runtime.metrics_auth import self_signed_context


def test_it_needs_no_directory_that_can_be_written(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")

    assert self_signed_context().cert_store_stats()["x509"] == 0
