"""Blocks, looks and stopping. Arms are numbers; servers, clock and progress are injected.

testbed.py        protocols of what the engine drives
context_state.py  the state of one context
forecast.py       the blocks that a context still needs
scheduler.py      turns, looks, when to stop, remaining time of a study
block_runner.py   one start of the servers, and the blocks measured on it
progress.py       events for observers
"""
