"""What ends a pod, the order of stops, grace periods, the active deadline and the final status.

causes: TERM-12, TERM-13, TERM-14, TERM-17, TERM-23, TERM-26.
deadline: DEADLINE-01, DEADLINE-02, INIT-19.
final_status: TERM-15, TERM-16, TERM-18, TERM-19, TERM-30, TERM-31, TERM-32.
grace: TERM-03, TERM-04, TERM-05, TERM-06, TERM-07, TERM-11, WORK-07, WORK-08, WORK-33.
order: TERM-01, TERM-02, TERM-10, TERM-20, TERM-21, TERM-22, TERM-24, TERM-25, TERM-29.
stop_signal: TERM-28.
"""
