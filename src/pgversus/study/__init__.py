"""The question: what is compared, under which work, by which design. Pure.

servers.py     how a server is named on the command line
build_options.py  what is asked of a server that is built from source
settings.py    --set NAME=A,B,C
dataset.py     what is loaded
workload.py    what is run and timed: a mix of pgbench scripts, or an operation
operation.py   what is done once to a state, and timed
steps.py       an operation from what the user wrote
block_size.py  the same bytes in every arm, whatever its blocks
counterfactual.py  the comparison that tells what a changed plan accounts for
comparison.py  arms, dataset, workload and design together
asked.py       how a study was asked for
host_access.py  programs, connections, builds and files that a study asks for
study.py       all comparisons of one study, each in its context
file/          a study read from a TOML file
design.py      blocks, windows, margin, budget
windows.py     the windows of a context, fitted to its load
choices.py     from what the user chose of a design to the design
needs.py       what a study will need: trials, disk, time; which contexts take turns
published.py   figures of others that a study is held against
metrics.py     the quantities that are measured, with unit and better direction
counters.py    what explains a result: names, units, meaning
"""
