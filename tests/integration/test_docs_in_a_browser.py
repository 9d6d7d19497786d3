"""Pages of the documentation in a real browser, wide and as on a phone: nothing is cut off.

`make docs` has to have run. What was seen is kept in build/docs-pages.
"""

import asyncio
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from testing.browser import browsing

ROOT = Path(__file__).parents[2]
SITE = ROOT / "site"
KEPT = ROOT / "build" / "docs-pages"
CHROMIUM = shutil.which("chromium")

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="Debian's package chromium is not here"),
    pytest.mark.skipif(not SITE.exists(), reason="make docs has not made site/"),
]

# Of each element what is wider than it, where nobody can scroll to the rest: clipped by its own box, or by what it is in.
CLIPPED = """
(() => {
  const found = [];
  const shown = one => one.checkVisibility({checkOpacity: true, checkVisibilityCSS: true});
  const scrolls = one => {
    for (let at = one; at && at !== document.body; at = at.parentElement)
      if (['auto', 'scroll'].includes(getComputedStyle(at).overflowX)) return true;
    return false;
  };
  const called = one => one.tagName.toLowerCase() + (one.className && one.className.baseVal === undefined
    ? '.' + [...one.classList].join('.') : '') + ': ' + one.textContent.trim().slice(0, 60);
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) found.push(`the page scrolls sideways: ${page.scrollWidth} in ${page.clientWidth}`);
  for (const one of document.querySelectorAll('.md-content *, .md-footer *, .md-header__button, .md-tabs *')) {
    if (!shown(one) || !one.clientWidth || one.closest('svg') || one.closest('.md-clipboard')) continue;
    const style = getComputedStyle(one);
    if (one.scrollWidth > one.clientWidth + 1 && ['hidden', 'clip'].includes(style.overflowX)) found.push(`${called(one)} (${one.scrollWidth} in ${one.clientWidth})`);
    if (one.getBoundingClientRect().right > page.clientWidth + 1 && !scrolls(one)) found.push(`${called(one)} ends beside the page`);
  }
  return found;
})()
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def url():
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


async def looked_at(url: str, width: int, profile: Path) -> dict[str, list[str]]:
    """What is clipped, by page."""
    found = {}
    (KEPT / str(width)).mkdir(parents=True, exist_ok=True)
    async with browsing(str(CHROMIUM), profile) as browser:
        await browser.resize(width, 900)
        for page in sorted(SITE.rglob("*.html")):
            name = str(page.relative_to(SITE))
            await browser.open(f"{url}/{name}")
            found[name] = await browser.run(CLIPPED)
            kept = KEPT / str(width) / f"{name.replace('/', '-')}.png"
            kept.write_bytes(await browser.picture(most=2700))
    return found


@pytest.mark.parametrize("width", [1300, 390])
def test_nothing_on_a_page_is_clipped(url, tmp_path, width):
    found = asyncio.run(looked_at(url, width, tmp_path / "profile"))

    assert len(found) > 50, "all pages"
    assert {name: clipped for name, clipped in found.items() if clipped} == {}


def test_a_page_that_clips_is_noticed(url, tmp_path):
    async def spoilt() -> list[str]:
        async with browsing(str(CHROMIUM), tmp_path / "profile") as browser:
            await browser.resize(390, 900)
            await browser.open(f"{url}/index.html")
            await browser.run(
                "document.querySelector('.md-content p').innerHTML = '<span style=\"display: block; "
                "overflow: hidden; width: 90px; white-space: nowrap\">as long as a line may well be</span>'"
            )
            return await browser.run(CLIPPED)

    assert any("as long as a line" in one for one in asyncio.run(spoilt()))
