"""Scenario files that somebody wrote outside the package."""

GOOD = '''
@witness("SANDBOX-02")
async def test_good(node: Node) -> None:
    """A killed sandbox is replaced."""
    web = await node.run()
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", attempt=1)
'''
TIMES_OUT = '''
async def test_times_out(node: Node) -> None:
    """A pod that runs on is awaited to fail."""
    web = await node.run()
    await web.until_phase("Failed", within=20)
'''
ASSERTS = '''
async def test_asserts(node: Node) -> None:
    """A pod that runs is asserted to have failed."""
    web = await node.run()
    assert web.phase == "Failed"
'''
RAISES = '''
async def test_raises(node: Node) -> None:
    """A scenario with a mistake."""
    await node.run()
    raise ValueError("boom")
'''
PLAIN = '''
def test_plain() -> None:
    """No scenario at all."""
'''


def scenario_file(*scenarios: str) -> str:
    """The text of a file with these scenarios."""
    first = '"""Scenarios."""\n\nfrom kubelet_conformance.node import Node, container, witness\n'
    return "\n".join([first, *scenarios])
