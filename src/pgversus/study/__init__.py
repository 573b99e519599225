"""The question: the compared arms, their workload and the design. Pure.

servers.py     server names on the command line
build_options.py  options of a server that is built from source
settings.py    --set NAME=A,B,C
configuration.py  the settings of a postgresql.conf
dataset.py     the data to load
workload.py    an operation, or a mix of pgbench scripts
steps.py       operations built from the user's input
comparison.py  arms, dataset, workload and design of one comparison; equal bytes for every block size
counterfactual.py  the comparison that measures the effect of a changed plan
targets.py     targets of an upgrade check with other statistics or defaults
statement_scripts.py  scripts that execute or plan statements of an application
application.py  a context for each statement of an application
host_access.py  programs, connections, builds and files that a study uses
study.py       all comparisons of one study, each in its context
file/          studies read from a TOML file
design.py      blocks, windows, margin, budget, and the user's choices of them
windows.py     the windows of a context, fitted to its load
needs.py       estimates of trials, disk space and time; contexts that run in turn
published.py   published figures to compare a study with
metrics.py     the measured quantities, with unit and better direction
counters.py    counters that explain a result: names, units, meaning
"""
