"""What a shell completes: ids of contracts and names of scenarios, beside commands and options."""

import pytest
from click.shell_completion import ShellComplete

from kubelet_conformance.cli.group import group


@pytest.mark.parametrize(
    ("words", "begun", "completed"),
    [
        (["explain"], "probe-1", "PROBE-10"),
        (["run"], "TERM-3", "TERM-30"),
        (["check", "--contract"], "GC-0", "GC-01"),
        (["run", "--scenario"], "backoff.red", "backoff.reduced_delays"),
        (["compare", "--scenario"], "backoff.red", "backoff.reduced_delays"),
    ],
)
def test_ids_and_names_are_completed(words: list[str], begun: str, completed: str) -> None:
    """Each that begins so is offered, and nothing else."""
    completion = ShellComplete(group, {}, "kubelet-conformance", "_COMPLETE")
    offered = [each.value for each in completion.get_completions(words, begun)]

    assert completed in offered
    assert all(each.lower().startswith(begun.lower()) for each in offered)
