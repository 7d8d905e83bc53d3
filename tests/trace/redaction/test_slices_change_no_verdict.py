"""Slices change no verdict: what is broken in a slice is broken in the whole, for the same pod."""

import io
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import outcomes
from recording import load, shipped
from sampling import of_recorded_traces
from shared_plays import SharedPlays

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.trace.redaction.redactor import Redactor
from kubelet_conformance.trace.redaction.slicing import Cut, slice_trace
from kubelet_fixtures import traces

BAD = {Verdict.BROKEN, Verdict.ERROR}
FOUND = (
    ("admission.every_pod_is_admitted_again_after_a_restart", Cut(("default/late",))),
    ("config.changes_of_a_mirror_do_not_reach_the_pod", Cut(("default/web-node-1", "default/web"))),
    ("devices.device_that_cannot_be_given_back", Cut(("default/job",))),
    ("devices.shared_device_goes_with_its_last_pod", Cut(("default/one",))),
    ("eviction.greediest_pod_goes_and_the_others_stay", Cut(("default/small",))),
    ("eviction.later_kill_gives_the_reason", Cut((), 10.0)),
    ("loop.status_that_fails_for_long_stops_everything", Cut((), 4.5)),
    ("metrics.sandboxes_are_counted", Cut(("default/web",))),
    ("pleg.failing_listing_stops_the_loop", Cut(("default/web",))),
    ("pleg_evented.stream_that_breaks_is_opened_anew", Cut((), 13.122)),
    ("probes.command_of_a_probe_is_expanded", Cut()),
    ("probes.late_result_hits_no_other", Cut(("default/web",), 3.0)),
    ("resize.what_shrinks_goes_first", Cut((), 6.0)),
    ("restart.new_image_replaces_a_running_container", Cut((), 5.0)),
    ("sidecar.hook_of_a_sidecar_comes_before_the_next", Cut((), 5.434)),
    ("sidecar.next_instance_of_a_sidecar_has_to_start_too", Cut((), 29.252187000000003, 32.991)),
    ("sidecar_end.failing_sidecar_is_not_killed_out_of_turn", Cut((), 8.574)),
    ("sidecar_end.sidecars_get_what_the_apps_leave_of_the_grace", Cut((), 5.0)),
    ("start.termination_message_is_reported", Cut()),
    ("static_pods.edited_manifest_is_another_pod", Cut(("8edfc646748d0193b3866bc11d19605b",))),
    ("static_pods.static_pod_is_pending_at_first", Cut((), 0.294)),
    ("static_pods.version_that_never_started_is_skipped", Cut((), 2.905, 19.0005)),
)
"""Cuts that once broke what the whole trace keeps."""


def broken(name: str, trace: bytes) -> set[str]:
    """The contracts that are broken, and those whose judge failed."""
    return {key for key, one in outcomes(name, trace).items() if one.verdict in BAD}


def broken_anew(path: Path, cut: Cut, *, redacted: bool) -> set[str]:
    """What is broken in this slice of a trace that breaks nothing."""
    file = io.BytesIO()
    slice_trace(path, cut, file, Redactor(b"k" * 16) if redacted else None)
    return broken(path.name, file.getvalue())


@cache
def pods_and_times(path: Path) -> tuple[list[str], list[float]]:
    """The pods that a trace wants, by name and by UID, and the times of its records."""
    records = load(path).records
    wanted = [one["pod"]["metadata"] for one in records if one["kind"] == "pod" and one["op"] == "set"]
    names = {f"{meta.get('namespace', 'default')}/{meta['name']}" for meta in wanted}
    return sorted(names | {meta["uid"] for meta in wanted if "uid" in meta}), [one["t"] for one in records]


@st.composite
def cuts(draw: st.DrawFn) -> tuple[Path, Cut]:
    """A shipped trace, and a cut of it by pods, at times at or beside those of its records, or by both."""
    path = draw(st.sampled_from(shipped(traces())))
    pods, times = pods_and_times(path)
    beside = st.sampled_from((0.0, 0.0005, -0.0005, 0.3))
    drawn = [draw(st.sampled_from(times)) + draw(beside) for _ in range(2)]
    begin, end = sorted(min(max(t, 0.0), times[-1]) for t in drawn)
    chosen = draw(st.lists(st.sampled_from(pods), max_size=2, unique=True))
    return path, Cut(tuple(chosen), draw(st.sampled_from((None, begin))), draw(st.sampled_from((None, end))))


@pytest.mark.slow
@settings(max_examples=250)
@given(cut=cuts(), redacted=st.booleans())
def test_no_cut_breaks_what_was_kept(cut: tuple[Path, Cut], redacted: bool) -> None:  # noqa: FBT001
    """Whatever pod or span is cut out of a real trace, with secrets or without, breaks nothing new."""
    assert broken_anew(*cut, redacted=redacted) == set()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "cut"), FOUND, ids=[name for name, _ in FOUND])
def test_no_cut_that_was_found_breaks_anything(name: str, cut: Cut, plays: SharedPlays) -> None:
    """The slices of scenarios that were found once, with secrets and without."""
    path, whole, _ = plays.of(name)

    assert not whole.broken
    assert [broken_anew(path, cut, redacted=redacted) for redacted in (False, True)] == [set(), set()]


@of_recorded_traces(one_in=6)
def test_the_only_pod_is_nearly_the_whole(path: Path) -> None:
    """What is judged of a trace's only pod is judged of its slice, as often; the node's own rules go."""
    file, (pod, *_) = io.BytesIO(), pods_and_times(path)[0]
    slice_trace(path, Cut((pod,)), file)
    whole, part = outcomes(path.name, path.read_bytes()), outcomes(path.name, file.getvalue())
    lost = {key for key, one in whole.items() if one.activations > part[key].activations}

    assert len(lost) <= 3
