"""The plans of what is measured: captured under the load's own settings, and held against each other.

statements.py  what a workload sends, asked of pgbench
capture.py     the plan of each statement on one server
undoing.py     which settings bring an old plan back
sampling.py    whether plans under load are those that were captured
explainer.py   the plans of all arms of a context, while their servers run
comparing.py   the plans of all arms, side by side
session.py     plans alone: servers started, asked and stopped, without any load
"""
