"""The messages between a kubelet and a DRA driver: who it is, and what it is to prepare (KEP-4381)."""

from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from kubelet_fakes.runtime.faults import PLUGIN_CALLS
from kubelet_fakes.runtime.serving.methods import Method

_PACKAGE = "dra"
_FIELDS = {
    "Nothing": "",
    "PluginInfo": "type name endpoint supported_versions[]",
    "Claim": "namespace uid name",
    "Claims": "claims[]:Claim",
    "Device": "request_names[] pool_name device_name cdi_device_ids[]",
    "Devices": "devices[]:Device",
    "DevicesOfClaim": "uid devices:Devices",
    "DevicesOfClaims": "claims[]:DevicesOfClaim",
}
"""Those that are used of each message, numbered in this order; what has no type is text.

`DevicesOfClaims` is a map by UIDs, and written as one.
"""
SERVICES = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
"""The versions that a driver offers: kubelets from 1.34 on take the first, from 1.32 on the second."""


def _message(name: str, fields: str) -> DescriptorProto:
    every = [_field(number, word) for number, word in enumerate(fields.split(), 1)]
    return DescriptorProto(name=name, field=every)


def _field(number: int, word: str) -> FieldDescriptorProto:
    name, _, kind = word.partition(":")
    is_list = name.endswith("[]")
    return FieldDescriptorProto(
        name=name.removesuffix("[]"),
        number=number,
        label=FieldDescriptorProto.LABEL_REPEATED if is_list else FieldDescriptorProto.LABEL_OPTIONAL,
        type=FieldDescriptorProto.TYPE_MESSAGE if kind else FieldDescriptorProto.TYPE_STRING,
        type_name=f".{_PACKAGE}.{kind}" if kind else None,
    )


_POOL: Any = DescriptorPool()
_POOL.Add(
    FileDescriptorProto(
        name="dra.proto",
        package=_PACKAGE,
        syntax="proto3",
        message_type=[_message(name, fields) for name, fields in _FIELDS.items()],
    )
)


def message(name: str) -> Any:  # noqa: ANN401 - classes that are made here have no types
    """The class of the messages of that name."""
    return GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


def _method(service: str, name: str, request: str, response: str) -> Method:
    return Method(service, name, message(request), message(response), streams=False)


METHODS = (
    _method("pluginregistration.Registration", "GetInfo", "Nothing", "PluginInfo"),
    _method("pluginregistration.Registration", "NotifyRegistrationStatus", "Nothing", "Nothing"),
    *(
        _method(f"k8s.io.kubelet.pkg.apis.dra.{service}", call, "Claims", "DevicesOfClaims")
        for service in SERVICES
        for call in PLUGIN_CALLS
    ),
)
"""All that a kubelet calls."""
