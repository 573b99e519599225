"""Reasons to trust a result less, worded from what was seen.

caveats.py         all of them; those from what the arms are and did
plan_gates.py      caveats from what plans say
load_gates.py      caveats from what was counted in the windows
pressure_gates.py  caveats from waiting for memory and disk
rate_gates.py      caveats from a rate that was not reached
measured.py        what was measured of one arm
"""
