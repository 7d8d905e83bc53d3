"""What is to be recorded, and how: made from the command line, handed to the process that writes."""

import msgspec


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One recording.

    `listen` and `upstream` are paths of sockets, `output` is the first file. `started` is the time of `t` 0
    as RFC 3339, `started_ns` the monotonic clock then. `pods` is a folder, a manifest file or a URL. Sizes
    are in bytes; `keep` is how many files there are at most.
    """

    listen: str
    upstream: str
    output: str
    started: str
    started_ns: int
    node: str
    node_assumed: bool = False
    kubernetes: str | None = None
    pods: str | None = None
    insecure: bool = False
    judges: bool = False
    redacts: bool = True
    max_bytes: int = 100 * 1024 * 1024
    keep: int = 10
    form: str = "terminal"
    report: str | None = None
    debug: bool = False

    @property
    def pods_url(self) -> str | None:
        """The URL to ask for pods, if it is one."""
        found = self.pods is not None and self.pods.startswith(("http://", "https://"))
        return self.pods if found else None
