"""When dead containers, sandboxes, images, logs and pod directories are removed.

cleanup: CLEANUP-01, CLEANUP-02, CLEANUP-06, CLEANUP-07, CLEANUP-08.
containers: GC-01, GC-02, GC-04, GC-05, GC-09, GC-10.
files: CLEANUP-03, CLEANUP-04, CLEANUP-05, GC-06, GC-07.
images: GC-12.
limits: GC-03, GC-08, GC-11.
"""
