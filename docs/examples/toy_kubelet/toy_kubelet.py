"""A toy kubelet: it runs the pods of a folder on a container runtime, and is wrong in several ways.

python toy_kubelet.py PODS RUNTIME HEALTHZ_PORT LOGS NODE
"""

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import grpc
import yaml
from cri_api.v1 import api_pb2 as cri
from cri_api.v1 import api_pb2_grpc as rpc


class Healthz(BaseHTTPRequestHandler):
    """Says that the kubelet is ready."""

    def do_GET(self):
        """Answer every request with 200."""
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        """Write no log."""


class Toy:
    """Compares the pods of the folder with what the runtime has, again and again."""

    def __init__(self, pods, runtime, logs, node):
        self.pods, self.logs, self.node = Path(pods), logs, node
        channel = grpc.insecure_channel(runtime)
        self.runtime = rpc.RuntimeServiceStub(channel)
        self.images = rpc.ImageServiceStub(channel)

    def wanted(self):
        """The pods of the folder by UID, named after the node as static pods are."""
        found = {}
        for file in self.pods.iterdir():
            pod = yaml.safe_load(file.read_text())
            metadata = pod["metadata"]
            metadata.setdefault("namespace", "default")
            metadata.setdefault("uid", metadata["name"])
            metadata["name"] += f"-{self.node}"
            found[metadata["uid"]] = pod
        return found

    def sync(self):
        """Stop what is not wanted any more, and start what is."""
        sandboxes = {
            each.metadata.uid: each.id
            for each in self.runtime.ListPodSandbox(cri.ListPodSandboxRequest()).items
            if each.state == cri.SANDBOX_READY
        }
        containers = self.runtime.ListContainers(cri.ListContainersRequest()).containers
        wanted = self.wanted()
        for uid in sandboxes.keys() - wanted.keys():
            self.runtime.StopPodSandbox(cri.StopPodSandboxRequest(pod_sandbox_id=sandboxes[uid]))
        for uid, pod in wanted.items():
            config = self.sandbox_config(pod)
            sandbox = sandboxes.get(uid) or self.run_sandbox(config)
            for each in pod["spec"]["containers"]:
                mine = [one for one in containers if one.pod_sandbox_id == sandbox]
                runs = [one for one in mine if one.metadata.name == each["name"]]
                if not any(one.state == cri.CONTAINER_RUNNING for one in runs):
                    self.start(config, sandbox, each, len(runs))

    def run_sandbox(self, config):
        """Run a new sandbox, and return its id."""
        return self.runtime.RunPodSandbox(cri.RunPodSandboxRequest(config=config)).pod_sandbox_id

    def start(self, config, sandbox, container, attempt):
        """Create a container and start it."""
        request = cri.CreateContainerRequest(
            pod_sandbox_id=sandbox,
            sandbox_config=config,
            config=cri.ContainerConfig(
                metadata=cri.ContainerMetadata(name=container["name"], attempt=attempt),
                image=cri.ImageSpec(image=container["image"]),
                command=container.get("command", []),
                args=container.get("args", []),
                labels={**config.labels, "io.kubernetes.container.name": container["name"]},
                log_path=f"{container['name']}/{attempt}.log",
            ),
        )
        request.config.annotations.update({})
        made = self.runtime.CreateContainer(request).container_id
        self.runtime.StartContainer(cri.StartContainerRequest(container_id=made))

    def sandbox_config(self, pod):
        """What a pod's sandbox is made from."""
        names = pod["metadata"]
        name, namespace, uid = names["name"], names["namespace"], names["uid"]
        return cri.PodSandboxConfig(
            metadata=cri.PodSandboxMetadata(name=name, namespace=namespace, uid=uid),
            hostname=name,
            annotations={},
            log_directory=f"{self.logs}/{namespace}_{name}_{uid}",
            labels={
                "io.kubernetes.pod.name": name,
                "io.kubernetes.pod.namespace": namespace,
                "io.kubernetes.pod.uid": uid,
            },
        )


def main():
    """Serve the health, and sync for ever."""
    pods, runtime, port, logs, node = sys.argv[1:]
    server = HTTPServer(("127.0.0.1", int(port)), Healthz)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    toy = Toy(pods, runtime, logs, node)
    while True:
        try:
            toy.sync()
        except grpc.RpcError as error:
            print(error.details(), flush=True)
        time.sleep(0.5)


if __name__ == "__main__":
    main()
