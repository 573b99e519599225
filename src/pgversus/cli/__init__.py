"""The command line: one file for each command, and the only place that prints or exits.

main.py      entry, errors, exit codes
values.py    how flags are read: durations, shares, variables
compare.py   pgversus compare: its flags, and how it ends
question.py  from the flags to the question they ask
progress.py  what is shown while it runs
errors.py    errors as people read them
"""
