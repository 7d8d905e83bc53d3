"""Cluster IPs of services, and how their ports are patched."""

from typing import Any

from api_world import ApiWorld, refused

Json = dict[str, Any]


def service(name: str, **spec: Any) -> Json:
    """A service of one port."""
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"ports": [{"port": 80}], **spec}}


def test_addresses_are_given_once() -> None:
    """The lowest that is free; one that is named; none for headless services and external names."""
    api = ApiWorld()
    given = [api.create("services", service(name))["spec"]["clusterIP"] for name in ("a", "b")]
    api.delete("services", "a")
    named = api.create("services", service("n", clusterIP="10.96.0.3"))["spec"]
    again = api.create("services", service("c"))["spec"]["clusterIP"]
    headless = api.create("services", service("h", clusterIP="None"))["spec"]
    outside = api.create("services", service("e", type="ExternalName", externalName="x.y"))["spec"]
    error = refused(api.create, "services", service("d", clusterIP="10.96.0.3"))

    assert [*given, again] == ["10.96.0.1", "10.96.0.2", "10.96.0.1"]
    assert (named["clusterIPs"], named["ipFamilies"]) == (["10.96.0.3"], ["IPv4"])
    assert (headless["clusterIP"], headless["clusterIPs"]) == ("None", ["None"])
    assert "clusterIP" not in outside
    assert (error.code, "failed to allocate IP 10.96.0.3" in error.message) == (422, True)


def test_address_stays() -> None:
    """An update that names none keeps it, another one is refused, an external name gives it back."""
    api = ApiWorld()
    api.create("services", service("a"))
    kept = api.update("services", service("a", ports=[{"port": 81}]))["spec"]
    error = refused(api.update, "services", service("a", clusterIP="10.96.0.9"))
    external = api.update("services", service("a", type="ExternalName", externalName="x.y"))["spec"]

    assert (kept["clusterIP"], kept["ports"][0]["targetPort"]) == ("10.96.0.1", 81)
    assert "may not change once set" in error.message
    assert "clusterIP" not in external


def test_ports_are_merged_by_port() -> None:
    """A strategic merge patch changes the port that it names, and leaves the others."""
    api = ApiWorld()
    api.create("services", service("a", ports=[{"port": 80, "name": "x"}, {"port": 81, "name": "w"}]))

    patched = api.patch("services", "a", {"spec": {"ports": [{"port": 81, "name": "v"}]}})["spec"]["ports"]

    assert [(each["port"], each["name"]) for each in patched] == [(80, "x"), (81, "v")]
