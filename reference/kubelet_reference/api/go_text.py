"""Values as the kubelet's messages show them: durations, quoted texts, pods."""

import json

from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods


def duration_text(seconds: float) -> str:
    """A duration as "10s", "1m20s", "2h0m0s" or "250ms", to the millisecond."""
    milliseconds = round(seconds * 1000)
    if milliseconds < 1000:  # noqa: PLR2004 - a second
        return f"{milliseconds}ms" if milliseconds else "0s"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes_left = divmod(minutes, 60)
    text = f"{rest / 1000:g}s"
    if hours:
        return f"{hours}h{minutes_left}m{text}"
    return f"{minutes}m{text}" if minutes else text


def text_of(data: bytes) -> str:
    """Bytes as a text, in which what is no UTF-8 is replaced, as it is in JSON."""
    return data.decode(errors="replace")


def quoted(text: str) -> str:
    """The text in double quotes, with what is special in it escaped."""
    return json.dumps(text, ensure_ascii=False)


def pod_text(pod: Pod) -> str:
    """Name, namespace and UID of a pod, as "web_default(uid)"."""
    return f"{pods.full_name(pod)}({pods.uid(pod)})"
