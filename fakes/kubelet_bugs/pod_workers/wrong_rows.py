"""Tables of the worker in which a row is wrong."""

from kubelet_reference.pod_workers.worker_table import Row, WorkerTable


def with_row(table: WorkerTable, new: Row) -> WorkerTable:
    """The table with the row of that state, event and guard replaced."""
    place = next(
        number
        for number, row in enumerate(table.rows)
        if (row.state, row.event, row.guard) == (new.state, new.event, new.guard)
    )
    return WorkerTable((*table.rows[:place], new, *table.rows[place + 1 :]))
