"""Typed accessors on what a kubelet says to a plugin of dynamic resources."""

from __future__ import annotations

import msgspec


class _Body(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A message whose absent fields have their defaults."""


class ClaimName(_Body, frozen=True):
    """A claim of dynamic resources, and in a reply the devices that are ready for it."""

    namespace: str = ""
    name: str = ""
    cdi_devices: list[str] = msgspec.field(default_factory=list[str], name="CDI_devices")


class ClaimsRequest(_Body, frozen=True):
    """NodePrepareResources and NodeUnprepareResources."""

    claims: list[ClaimName] = []


class ClaimsReply(_Body, frozen=True):
    """What NodePrepareResources answers."""

    claims: list[ClaimName] = []
