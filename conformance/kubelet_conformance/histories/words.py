"""Steps in words."""

from __future__ import annotations

from kubelet_conformance.histories.history import DisturbEvents, Strike

_EFFECTS = {
    "before": "fails with {code} before it takes place",
    "after": "takes place and fails with {code}",
    "hang": "hangs until its deadline",
    "lost-reply": "takes place and is not answered",
}


def ended(code: int, *, oom: bool) -> str:
    """How a container ended."""
    return "is killed for lack of memory" if oom else f"exits with {code}"


_DISTURBED = {
    "lose": "tells nobody of {}",
    "delay": "tells of {} only {:g} s later",
    "reverse": "tells of {} in reverse order",
}


def disturbed(step: DisturbEvents) -> tuple[str, str]:
    """What becomes of container events in words, and the arguments of the scenario's word for it."""
    which = f"its next {step.count} events" if step.count > 1 else "its next event"
    arguments = f"{step.count}, {step.seconds:g}" if step.how == "delay" else f"{step.count}"
    return f"the runtime {_DISTURBED[step.how].format(which, step.seconds)}", arguments


def struck(step: Strike) -> tuple[str, str]:
    """A fault in words, and the arguments with which a scenario asks for it."""
    what = _EFFECTS.get(step.effect, "").format(code=step.code)
    late = f"is {step.delay:g} s late" if step.delay else ""
    which = f"the next {step.rpc}" if step.times == 1 else f"each of the next {step.times} {step.rpc}"
    arguments = [f'"{step.rpc}"', f'effect="{step.effect}"']
    if step.effect in {"before", "after"}:
        arguments.append(f'code="{step.code}"')
    if step.delay:
        arguments.append(f"delay={step.delay:g}")
    arguments.append(f"times={step.times}")
    return f"{which} {' and '.join(filter(None, (late, what)))}", ", ".join(arguments)
