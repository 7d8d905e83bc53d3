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
        await tab.open_all()
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
        await tab.open_all()
        assert await tab.run("document.documentElement.scrollWidth") <= width

    in_browser(test)


CONTRAST = """
[...document.querySelectorAll("body *")].flatMap((each) => {
  const style = getComputedStyle(each);
  const isText = [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!isText || each.closest("script, style, option, title") || !each.checkVisibility()) return [];
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const behind = [], drawing = each.closest("svg");
  for (let at = each; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
  if (drawing) {
    const { left, right, top, bottom } = each.getBoundingClientRect();
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    for (const shape of drawing.querySelectorAll("rect")) {
      const box = shape.getBoundingClientRect();
      const isUnder = box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
      const isBefore = shape.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING;
      if (isUnder && isBefore) behind.push(getComputedStyle(shape).fill);
    }
  }
  const paint = (colour) => { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); };
  const light = () => {
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  behind.forEach(paint);
  const ground = light();
  let opacity = 1;
  for (let at = each; at; at = at.parentElement) opacity *= getComputedStyle(at).opacity;
  canvas.globalAlpha = opacity;
  paint(drawing ? style.fill : style.color);
  const [dark, bright] = [ground, light()].sort((one, other) => one - other);
  const ratio = (bright + 0.05) / (dark + 0.05);
  const name = each.closest("[class]")?.getAttribute("class");
  return ratio < 4.5 ? [`${each.tagName}.${name}: ${ratio.toFixed(2)}`] : [];
})
"""
"""The texts whose colour differs too little from what is behind it: less than 4.5 to 1 (WCAG 2.2, 1.4.3)."""


@pytest.fixture
def compared(page: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The page of three records, of which one breaks what the others keep."""
    folder = page.parent
    for name, trace in (("kept", "quiet"), ("broken", "0")):
        in_process(capsys, "check", folder / f"{trace}.jsonl", "--record", folder / name)
    names = (folder / "kept", folder / "broken", folder / "kept")
    done = in_process(capsys, "compare", *names, "--format", "html", "--output", folder / "compared.html")
    assert done.code == 1, done.err
    return folder / "compared.html"


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_can_be_read(page: Path, compared: Path, *, dark: bool) -> None:
    """In the light and in the dark texts have the contrast that WCAG asks for at level AA."""

    async def test(tab: Tab) -> None:
        for each in (page, compared):
            await tab.open(each, dark=dark)
            await tab.open_all()
            assert await tab.run(CONTRAST) == []

    in_browser(test)


def test_paper_shows_all_of_a_scenario_and_no_fields(page: Path) -> None:
    """Printed, the fields are gone, long lines are broken, and no timeline is wider than the paper."""

    async def test(tab: Tab) -> None:
        await tab.open(page, 700, dark=True)
        scheme = {"name": "prefers-color-scheme", "value": "dark"}
        await tab.ask("Emulation.setEmulatedMedia", media="print", features=[scheme])
        await tab.open_all()
        hidden = "getComputedStyle(document.querySelector('.filters')).display"
        assert await tab.run(hidden) == "none"
        wide = "[...document.querySelectorAll('.lanes, pre, table')].map((each) => each.clientWidth)"
        assert max(await tab.run(wide)) <= 700
        assert await tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert await tab.run(CONTRAST) == []

    in_browser(test)


def test_records_stand_side_by_side(compared: Path) -> None:
    """What differs is shown first; the page fits a phone, and the fields bring back the rest."""

    async def test(tab: Tab) -> None:
        await tab.open(compared, 390)
        shown = await tab.run(CONTRACTS)
        assert "SANDBOX-04" in shown
        cells = await tab.run("document.getElementById('SANDBOX-04').querySelectorAll('.cell').length")
        assert cells == 3
        assert await tab.run("document.documentElement.scrollWidth") <= 390
        await tab.run(TYPE % '{change: ""}')
        assert len(await tab.run(CONTRACTS)) > len(shown)
        await tab.run(TYPE % '{change: "better"}')
        assert await tab.run(CONTRACTS) == []

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
        assert await tab.run(f"{figure}.querySelector('.on').matches('.mark.first')")
        over = "new PointerEvent('pointerover', {bubbles: true})"
        await tab.run(f"{figure}.querySelector('.i.start').dispatchEvent({over})")
        assert '"metadata"' in await tab.run(f"{figure}.querySelector('.detail pre').textContent")

    in_browser(test)
