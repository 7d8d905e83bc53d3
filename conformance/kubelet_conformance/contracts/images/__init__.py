"""When images are pulled, by which policy, how many in parallel, and what follows a failed pull.

failures: IMAGE-05, IMAGE-17, IMAGE-18, IMAGE-22.
pull_policy: IMAGE-01, IMAGE-02, IMAGE-03, IMAGE-04, IMAGE-06, IMAGE-16, IMAGE-19, IMAGE-24.
pull_queue: IMAGE-11, IMAGE-12, IMAGE-13, IMAGE-14, IMAGE-15, IMAGE-21.
pulls: IMAGE-07, IMAGE-08, IMAGE-09, IMAGE-10, IMAGE-23.
"""
