"""The command line: one file for each command, and the only place that prints or exits.

main.py         entry, errors, exit codes
compare.py      pgversus compare: its flags, and how it ends
question.py     from the flags of compare to the question they ask
arms.py         flags that say what is compared, of compare and plans
operation.py    from its flags to an operation
files.py        the files that flags name
run.py          pgversus run: a study from a file
plans.py        pgversus plans: how plans of the same statements differ
report.py       pgversus report: what earlier results say
studies.py      pgversus studies: the bundled studies
servers.py      pgversus servers: those that are here, and getting them
cache.py        pgversus cache: what is kept between runs
means.py        what compare and run have in common
language.py     in which language an answer is shown
values.py       how flags are read: variables
output.py       standard output and standard error
progress.py     what is shown while it runs
errors.py       errors as people read them
"""
