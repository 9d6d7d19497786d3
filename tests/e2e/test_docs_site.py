"""The documentation as its readers see it: every page in a real browser, on a wide screen and on a phone."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.minutes, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def looked_at() -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["make", "--old-file=.venv/.ready", "site-pictures"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_nothing_on_any_page_is_cut_off_and_nothing_is_fetched_from_elsewhere(looked_at):
    assert looked_at.returncode == 0, looked_at.stdout + looked_at.stderr
    pages = list((ROOT / "site").rglob("*.html"))
    assert len(pages) > 80
    for width in (1300, 390):
        assert len(list((ROOT / "build/site" / str(width)).rglob("*.png"))) == len(pages)


def test_a_page_that_is_cut_off_is_found(looked_at, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    pages = {
        "good": "<p>Everything fits.</p><pre style='overflow: auto; width: 100px'>it can be scrolled, so all of it is read</pre>",
        "hidden": "<div style='overflow: hidden; width: 50px; white-space: nowrap'>a long line in a short box</div>",
        "wide": "<div style='width: 2000px'>wider than any window here</div>",
        "elsewhere": "<p>x</p><img src='http://127.0.0.1:1/picture.png'>",
        "broken": "<p>x</p><script>nobody()</script>",
    }
    for name, body in pages.items():
        (site / f"{name}.html").write_text(f"<!doctype html><title>{name}</title>{body}")

    done = subprocess.run(
        [ROOT / ".venv-browser/bin/python", ROOT / "testing/site_in_browser.py", site, tmp_path / "pictures"],
        capture_output=True,
        text=True,
        check=False,
    )

    told = done.stdout.splitlines()
    assert done.returncode == 1, done.stderr
    assert any('hidden.html: div "a long line in a short box" is cut off' in line for line in told)
    assert any("wide.html: the page is 2008 wide" in line for line in told)
    assert any("elsewhere.html fetches http://127.0.0.1:1/picture.png" in line for line in told)
    assert any("broken.html: nobody is not defined" in line for line in told)
    assert not any("good.html" in line for line in told)
