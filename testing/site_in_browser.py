"""Opens every page of the documentation in Chromium, wide and narrow: what is cut off, what fails, what is fetched.

`python site_in_browser.py SITE PICTURES` prints what is wrong and exits with 1; pictures of all pages are kept. It
runs in an environment of its own, so it imports nothing of ours.
"""

import functools
import http.server
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, Request, sync_playwright

CHROMIUM = "/usr/bin/chromium"
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
WIDTHS = (1300, 390)
# A picture ends there: the longest pages are a hundred thousand pixels high, and take minutes to draw.
TALLEST = 8000
PATIENCE_MS = 120_000
# Text that nobody can read: cut off by its own box, or beyond the edge of the window where nothing scrolls. The menu
# and the search of a narrow window wait outside of it.
CUT_OFF = """() => {
    const scrolls = (element) => ['auto', 'scroll'].includes(getComputedStyle(element).overflowX);
    const waits = (element) => element.closest('.md-search, .md-sidebar, .md-overlay, .md-clipboard, .md-top');
    const inside = (element) => {
        for (let above = element; above; above = above.parentElement) if (scrolls(above)) return true;
        return false;
    };
    const named = (element) => `${element.tagName.toLowerCase()} "${element.innerText.trim().slice(0, 60)}"`;
    const found = [];
    const page = document.scrollingElement;
    if (page.scrollWidth > innerWidth) found.push(`the page is ${page.scrollWidth} wide`);
    for (const element of document.body.querySelectorAll('*')) {
        const style = getComputedStyle(element);
        if (!element.innerText?.trim() || !element.clientWidth) continue;
        if (!element.checkVisibility({checkOpacity: true, checkVisibilityCSS: true})) continue;
        if (waits(element) || style.display === 'inline') continue;
        const hides = ['hidden', 'clip'].includes(style.overflowX);
        if (hides && element.scrollWidth > element.clientWidth + 1) found.push(`${named(element)} is cut off`);
        if (element.getBoundingClientRect().right > innerWidth + 1 && !inside(element))
            found.push(`${named(element)} is beyond the edge`);
    }
    return found;
}"""


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the library
        """Nobody reads which files a browser asked for."""


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that goes to the next page hangs up in the middle of the last one."""


def troubles(site: Path, pictures: Path, widths: tuple[int, ...] = WIDTHS) -> list[str]:
    """What is wrong with the pages of a site, by page and width."""
    names = sorted(str(page.relative_to(site)) for page in site.rglob("*.html"))
    with _served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        found = [
            trouble
            for width in widths
            for trouble in _at(width, names, browser, address, pictures / str(width))
        ]
        browser.close()
        return found


def _at(width: int, names: list[str], browser: Browser, address: str, pictures: Path) -> list[str]:
    found: list[str] = []
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    page.on("requestfailed", lambda request: found.extend(_failed(width, request)))
    page.on("pageerror", lambda error: found.append(f"{width}: {page.url}: {error}"))
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith((address, "data:", "blob:"))
            else found.append(f"{width}: {page.url} fetches {request.url}")
        ),
    )
    for name in names:
        page.goto(f"{address}/{name}", wait_until="load", timeout=PATIENCE_MS)
        found += [f"{width}: {name}: {text}" for text in page.evaluate(CUT_OFF)]
        picture = pictures / f"{name.removesuffix('.html')}.png"
        picture.parent.mkdir(parents=True, exist_ok=True)
        height = min(page.evaluate("document.scrollingElement.scrollHeight"), TALLEST)
        part = {"x": 0, "y": 0, "width": width, "height": height}
        page.screenshot(path=picture, full_page=True, clip=part, timeout=PATIENCE_MS)
    if "index.html" in names and not _finds(page, f"{address}/index.html", "maxUnavailable"):
        found.append(f"{width}: the search finds nothing")
    context.close()
    return found


def _failed(width: int, request: Request) -> Iterator[str]:
    """What was on its way when the next page was opened does not count."""
    if request.failure != "net::ERR_ABORTED":
        yield f"{width}: {request.url} could not be fetched"


def _finds(page: Page, address: str, word: str) -> bool:
    """Whether the search of the site, which needs nothing from elsewhere, finds a page with that word."""
    page.goto(address, timeout=PATIENCE_MS)
    if not page.query_selector(".md-search__input"):
        return True
    page.keyboard.press("/")
    page.keyboard.type(word)
    return (
        page.wait_for_selector(".md-search-result__link", state="attached", timeout=PATIENCE_MS) is not None
    )


@contextmanager
def _served(site: Path) -> Iterator[str]:
    server = _Server(("127.0.0.1", 0), functools.partial(_Handler, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    wrong = troubles(Path(sys.argv[1]), Path(sys.argv[2]))
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)
