"""The states of a pod's worker, its updates, the steps of its syncs and its termination.

kill_pod: SYNC-06, SYNC-08, SYNC-13, SYNC-24.
orphans: WORK-24.
states: WORK-01, WORK-03, WORK-04, WORK-05, WORK-10, WORK-11, WORK-12, WORK-13, WORK-14, WORK-17, WORK-19.
sync: SYNC-01, SYNC-03, SYNC-04, SYNC-05, SYNC-07, SYNC-09, SYNC-20.
sync_order: SYNC-02, SYNC-10, SYNC-11, SYNC-14, SYNC-19, SYNC-21, SYNC-23.
termination: WORK-06, WORK-23, WORK-27, WORK-28, WORK-29, WORK-30, WORK-31.
updates: WORK-02, WORK-09, WORK-15, WORK-18.
"""
