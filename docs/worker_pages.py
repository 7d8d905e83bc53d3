"""The table of the pod worker as a diagram and as Markdown, for the guide."""

from collections.abc import Iterable

from kubelet_reference.pod_workers.worker_table import ROWS, Row, State


def diagram(rows: Iterable[Row] = ROWS) -> str:
    """The rows that change the state as a Mermaid state diagram, one arrow for each pair of states."""
    labels: dict[tuple[State, State], list[str]] = {}
    for row in rows:
        if row.state is not row.next:
            labels.setdefault((row.state, row.next), []).append(_label(row))
    arrows = (
        f"    {_node(state)} --> {_node(to)}: {'<br/>'.join(events)}"
        for (state, to), events in labels.items()
    )
    return "\n".join(("stateDiagram-v2", *arrows, ""))


def markdown_table(rows: Iterable[Row] = ROWS) -> str:
    """All rows as a Markdown table."""
    lines = ["| state | event | next | actions |", "|---|---|---|---|"]
    lines += (
        f"| {row.state} | {_label(row)} | {row.next} | {', '.join(row.actions) or 'nothing'} |"
        for row in rows
    )
    return "\n".join((*lines, ""))


def _label(row: Row) -> str:
    return f"{row.event} [{row.guard}]" if row.guard else str(row.event)


def _node(state: State) -> str:
    return "[*]" if state is State.NONE else str(state)
