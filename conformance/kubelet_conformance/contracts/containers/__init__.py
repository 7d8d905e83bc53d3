"""How containers are created and started: fields, reasons of failed starts, init containers, sidecars,
ephemeral containers, image volumes and dynamic resources.

dynamic_resources: SANDBOX-25, SYNC-18, TERM-27.
ephemeral: EPH-01, EPH-02, EPH-03, EPH-04, EPH-05, EPH-06, EPH-07, EPH-08, EPH-09, EPH-10, EPH-11, EPH-12.
image_volumes: IMAGE-20.
init: INIT-01, INIT-02, INIT-03, INIT-04, INIT-05, INIT-06, INIT-10, INIT-12, INIT-13, INIT-20.
init_failures: INIT-07, INIT-08, INIT-09, INIT-11, INIT-14, INIT-15, INIT-16, INIT-17, INIT-18.
sidecar: SIDECAR-02, SIDECAR-03, SIDECAR-06, SIDECAR-07, SIDECAR-09, SIDECAR-10, SIDECAR-20, SIDECAR-21,
    SIDECAR-22, SIDECAR-23.
sidecar_end: SIDECAR-11, SIDECAR-12, SIDECAR-13, SIDECAR-14, SIDECAR-16, SIDECAR-27.
sidecar_probes: SIDECAR-04, SIDECAR-05, SIDECAR-15, SIDECAR-25.
sidecar_start: SIDECAR-01, SIDECAR-08, SIDECAR-17, SIDECAR-18, SIDECAR-19, SIDECAR-24, SIDECAR-26.
start: START-01, START-02, START-04, START-05, START-07, START-08, START-12, START-14.
start_fields: START-06, START-09, START-15, WORK-16.
start_reasons: SYNC-15, SYNC-16.
termination_message: START-11.
"""
