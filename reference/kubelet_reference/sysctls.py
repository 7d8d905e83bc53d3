"""Names of kernel parameters, which have two spellings."""

from __future__ import annotations

_SWAP = str.maketrans("./", "/.")


def dotted(name: str) -> str:
    """The name with dots between its parts, as the runtime takes it (SANDBOX-24).

    "net/ipv4/ip_forward" and "net.ipv4.ip_forward" name the same parameter: the first separator tells the
    spelling. In either one the other character belongs to a part's own name: "net/ipv4/conf/eno2.100/tag" is
    "net.ipv4.conf.eno2/100.tag".
    """
    separators = (char for char in name if char in "./")
    return name.translate(_SWAP) if next(separators, ".") == "/" else name
