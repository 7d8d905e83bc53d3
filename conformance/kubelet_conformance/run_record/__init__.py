"""The record of a run: what was judged, with its traces, in a folder or packed; every report renders one."""
