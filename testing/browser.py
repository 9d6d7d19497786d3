"""A real Chromium without a window, asked by its DevTools protocol: pages as people see them."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-port=0",
)  # fmt: skip
_TOLD = re.compile(rb"DevTools listening on (ws://\S+)")


class Page:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._asked = socket, 0

    async def ask(self, method: str, session: str = "", **parameters: Any) -> Any:
        self._asked += 1
        question = {"id": self._asked, "method": method, "params": parameters}
        await self._socket.send_json({**question, **({"sessionId": session} if session else {})})
        while True:
            answer = await self._socket.receive_json(timeout=60)
            if answer.get("id") == self._asked:
                assert "error" not in answer, f"{method}: {answer.get('error')}"
                return answer["result"]


class Browser:
    def __init__(self, page: Page, session: str) -> None:
        self._page, self._session = page, session

    async def resize(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        await self._page.ask("Emulation.setDeviceMetricsOverride", self._session, **metrics)

    async def open(self, url: str) -> None:
        """Until all of it has been loaded."""
        await self._page.ask("Page.navigate", self._session, url=url)
        while await self.run("document.readyState + ' ' + location.href") != f"complete {url}":  # noqa: ASYNC110  It is asked over a wire.
            await asyncio.sleep(0.02)

    async def run(self, script: str) -> Any:
        answer = await self._page.ask(
            "Runtime.evaluate", self._session, expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def picture(self, most: int) -> bytes:
        """The page as a PNG, down to its end or so many pixels: a very long one takes minutes to draw."""
        width, height = await self.run(
            "[document.documentElement.clientWidth, document.documentElement.scrollHeight]"
        )
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, most), "scale": 1}
        answer = await self._page.ask(
            "Page.captureScreenshot", self._session, captureBeyondViewport=True, clip=clip
        )
        return base64.b64decode(answer["data"])


@asynccontextmanager
async def browsing(program: str, profile: Path) -> AsyncIterator[Browser]:
    process = await asyncio.create_subprocess_exec(
        program, *FLAGS, f"--user-data-dir={profile}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        async with asyncio.timeout(60):
            while (found := _TOLD.search(line := await process.stderr.readline())) is None:
                assert line, "the browser ended before it said where to ask it"
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(found[1].decode(), max_msg_size=0) as socket,
        ):
            page = Page(socket)
            target = (await page.ask("Target.createTarget", url="about:blank"))["targetId"]
            attached = await page.ask("Target.attachToTarget", targetId=target, flatten=True)
            yield Browser(page, attached["sessionId"])
    finally:
        process.kill()
        await process.wait()
