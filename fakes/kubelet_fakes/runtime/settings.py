"""What kind of runtime the fake is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """The fixed properties of a runtime.

    `evented` is whether it advertises the evented PLEG (CRI-31); `images` are on the node from the start;
    `mountpoint` is that of the image file system, a folder that exists; `pod_network` is the first half of
    every pod's address; `handlers` are the runtime handlers besides the default one.
    """

    name: str = "fake"
    version: str = "1.0.0"
    evented: bool = False
    images: tuple[str, ...] = ("img:1", "img:2", "side:1")
    mountpoint: str = "/"
    pod_network: str = "10.88"
    dual_stack: bool = False
    handlers: tuple[str, ...] = ("runc",)
