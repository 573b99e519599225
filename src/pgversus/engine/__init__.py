"""Blocks, looks and stopping. Arms are numbers; servers, clock and progress are given.

testbed.py        what the engine drives, as protocols
context_state.py  how far one context has come
scheduler.py      turns, looks, when to stop, how long a study may still take
block_runner.py   one start of the servers, and the blocks measured on it
progress.py       what the outside may watch
"""
