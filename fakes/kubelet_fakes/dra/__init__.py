"""Dynamic resource allocation (DRA, KEP-4381) beside a kubelet in a process of its own.

driver: the plugin that prepares the devices of claims.
protocol: what is said to it.
claims: the claims at the API server, as a scheduler and controllers keep them.
"""
