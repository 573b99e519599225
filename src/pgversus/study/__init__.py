"""The question: what is compared, under which work, by which design. Pure.

servers.py     how a server is named on the command line
build_options.py  options of a server that is built from source
settings.py    --set NAME=A,B,C
dataset.py     the data that are loaded
workload.py    an operation, or a mix of pgbench scripts
steps.py       an operation from what the user wrote
comparison.py  arms, dataset, workload and design together; equal bytes for every block size
counterfactual.py  the comparison that measures what a changed plan accounts for
host_access.py  programs, connections, builds and files that a study asks for
study.py       all comparisons of one study, each in its context
file/          a study read from a TOML file
design.py      blocks, windows, margin, budget, and the user's choices of them
windows.py     the windows of a context, fitted to its load
needs.py       what a study will need: trials, disk, time; which contexts take turns
published.py   published figures that a study is compared with
metrics.py     the quantities that are measured, with unit and better direction
counters.py    counters that explain a result: names, units, meaning
"""
