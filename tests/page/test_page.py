"""The page in a browser: it runs without an error, filters, shows breaks, and keeps text as text."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from browser import Tab, chromium
from command import in_process
from trace_builder import TraceBuilder

MARKUP = "<img src=x onerror=\"document.title='ran'\">'\"&amp;{{7*7}}"
NAMES = {
    "markup": MARKUP,
    "script": "</title></script><script>document.title='ran'</script>",
    "emoji": "🐳🔥",
    "right to left": "שלום עולם",
    "long": "x" * 10_000,
}
SHOWN = "[...document.querySelectorAll('%s > details')].filter((each) => !each.hidden).map((each) => each.id)"
CONTRACTS, SCENARIOS = SHOWN % "#contract-list", SHOWN % "#scenario-list"
TYPE = """
for (const [id, value] of Object.entries(%s)) {
  const field = document.getElementById(id);
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}
"""


def trace_of(path: Path, scenario: str, pod: str) -> Path:
    """The trace of a scenario in which a second sandbox is run while the first stands."""
    s = TraceBuilder(scenario=scenario)
    web = s.pod(pod)
    sandbox = s.run_sandbox(web)
    s.run_container(web, sandbox, "c1")
    s.status(web)
    s.wait(30).run_sandbox(web, attempt=1)
    path.write_bytes(s.text())
    return path


@pytest.fixture
def page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The page of a check of such traces, one for each kind of name, and one in which nothing happens."""
    traces = [trace_of(tmp_path / f"{number}.jsonl", *each) for number, each in enumerate(NAMES.items())]
    quiet = tmp_path / "quiet.jsonl"
    quiet.write_bytes(TraceBuilder(scenario=MARKUP).text())
    written = tmp_path / "page.html"
    done = in_process(capsys, "check", *traces, quiet, "--format", "html", "--output", written)
    assert done.code == 1, done.err
    return written


def in_browser(test: Callable[[Tab], Awaitable[None]]) -> None:
    """Run a test in a browser of its own; nothing may be written to the console."""

    async def run() -> None:
        async with chromium() as tab:
            await test(tab)
            assert tab.problems == []

    asyncio.run(run())


def test_it_opens_without_an_error_and_markup_in_names_is_text(page: Path) -> None:
    """Nothing that a trace says runs, and it is read as it was written."""

    async def test(tab: Tab) -> None:
        await tab.open(page)
        assert "broken" in await tab.run("document.title")
        assert await tab.run("document.querySelectorAll('img, main script:not([type])').length") == 0
        lanes = await tab.run(
            "[...document.querySelectorAll('.lane.pod bdi')].map((each) => each.textContent)"
        )
        assert MARKUP in lanes
        assert NAMES["right to left"] in lanes

    in_browser(test)


@pytest.mark.parametrize("width", [390, 1280])
def test_no_name_breaks_the_layout(page: Path, width: int) -> None:
    """With everything open the page is as wide as the window, on a phone too, in the dark."""

    async def test(tab: Tab) -> None:
        await tab.open(page, width, dark=True)
        await tab.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert await tab.run("document.documentElement.scrollWidth") <= width

    in_browser(test)


def test_filters_choose_contracts_and_scenarios(page: Path) -> None:
    """By verdict, area, level, words and scenario, alone and together; all is back when they are cleared."""

    async def test(tab: Tab) -> None:
        await tab.open(page)
        every = len(await tab.run(CONTRACTS))
        await tab.run(TYPE % '{verdict: "broken"}')
        broken = await tab.run(CONTRACTS)
        assert "SANDBOX-04" in broken
        assert len(broken) < every
        assert f"s-{MARKUP}" not in await tab.run(SCENARIOS)
        await tab.run(TYPE % '{verdict: "", area: "SANDBOX", level: "MUST", search: "one ready sandbox"}')
        assert all(each.startswith("SANDBOX-") for each in await tab.run(CONTRACTS))
        await tab.run(TYPE % '{area: "", level: "", search: "", scenario: "emoji"}')
        assert await tab.run(SCENARIOS) == ["s-emoji"]
        assert "SANDBOX-04" in await tab.run(CONTRACTS)
        await tab.run("document.querySelector('.filters [type=reset]').click()")
        await tab.settle()
        assert len(await tab.run(CONTRACTS)) == every
        await tab.run("document.querySelector('.matrix [data-area=SANDBOX][data-verdict=broken]').click()")
        assert "SANDBOX-04" in await tab.run(CONTRACTS)

    in_browser(test)


def test_the_timeline_of_a_broken_contract_shows_where(page: Path) -> None:
    """A link opens the scenario; the break is framed and named, and the keyboard goes to its calls."""

    async def test(tab: Tab) -> None:
        await tab.open(page)
        await tab.run("location.hash = '#s-emoji'")
        await tab.settle()
        assert await tab.run("document.getElementById('s-emoji').open")
        figure = "document.querySelector('#s-emoji .timeline')"
        assert await tab.run(f"{figure}.querySelectorAll('.slice, .i.mark').length") > 1
        tag = await tab.run(f"{figure}.querySelector('.slice text').textContent")
        assert await tab.run(f"document.getElementById('{tag.split()[0]}').dataset.verdict") == "broken"
        await tab.run(f"{figure}.querySelector('.scroll').focus()")
        await tab.press("ArrowRight")
        said = await tab.run(f"{figure}.querySelector('.detail').textContent")
        assert "breaks" in said
        assert await tab.run(f"{figure}.querySelector('.on').matches('.mark')")
        over = "new PointerEvent('pointerover', {bubbles: true})"
        await tab.run(f"{figure}.querySelector('.i.start').dispatchEvent({over})")
        assert '"metadata"' in await tab.run(f"{figure}.querySelector('.detail pre').textContent")

    in_browser(test)
