"""Admission, preemption, resizes, eviction, shutdown and the resource metrics of the node.

admission: ADMIT-01, ADMIT-02, ADMIT-03, ADMIT-04, ADMIT-05, ADMIT-06, ADMIT-10, ADMIT-11, WORK-34.
evicted: COND-08, EVICT-02, EVICT-05, EVICT-06, EVICT-07, WORK-21.
eviction: EVICT-01, EVICT-03, EVICT-04, EVICT-08, WORK-20.
metrics: METRIC-01, METRIC-02.
preemption: ADMIT-07, ADMIT-08, ADMIT-09, STATIC-23.
resize: RESIZE-01, RESIZE-02, RESIZE-03, RESIZE-05, RESIZE-07.
resize_effects: COND-09, PLEG-17, RESIZE-04, RESIZE-06, RESTARTKUBELET-16, STATIC-24.
shutdown: SHUT-01, SHUT-02, SHUT-03, SHUT-04.
"""
