"""The ports of a real node: its disk, its network, its clock and its runtime's socket."""
