"""Reasons to trust a result less, worded from what was seen.

caveats.py         all of them; those from what the arms are and did
load_gates.py      caveats from what was counted in the windows
pressure_gates.py  caveats from waiting for memory and disk
measured.py        what was measured of one arm
"""
