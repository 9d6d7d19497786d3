from bench.first import Notes, rows


def test_the_first_job_is_told_beside_the_same_pods_by_hand():
    seconds, requests = rows(Notes(seconds=9.0, seconds_by_hand=6.0, requests=42))

    assert (seconds.value, seconds.ratio, seconds.ratio_to) == (9.0, 1.5, "the same pods by hand")
    assert (requests.value, requests.unit) == (42, "requests")
