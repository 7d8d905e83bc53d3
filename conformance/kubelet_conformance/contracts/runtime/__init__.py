"""What the container runtime must do for any CRI client.

calls: CRI-01, CRI-02, CRI-03, CRI-04, CRI-05, CRI-07, CRI-08, CRI-11, CRI-12, CRI-13, CRI-26, CRI-27,
    CRI-37, CRI-41, CRI-42.
events: CRI-30, CRI-31.
expected: CRI-32, CRI-33.
images: CRI-23, CRI-24, CRI-25, CRI-40.
lists: CRI-06, CRI-09, CRI-15, CRI-17, CRI-43.
logs: CRI-29, CRI-36.
records: CRI-10, CRI-14, CRI-16, CRI-18, CRI-19, CRI-20, CRI-21, CRI-22, CRI-34, CRI-35, CRI-39.
resources: CRI-28.
"""
