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
side_by_side.py two of them side by side
write_up.py     one of them as an article
studies.py      pgversus studies: the bundled studies
servers.py      pgversus servers: those that are here, and getting them
cache.py        pgversus cache: what is kept between runs
command.py      the command as it was typed
means.py        what compare and run have in common
language.py     in which language an answer is shown
values.py       how flags are read: variables
output.py       standard output and standard error
progress.py     what is shown while it runs
progress_region.py  the part of a terminal that is rewritten
progress_rows.py    its table of verdicts so far
progress_texts.py   texts that fit one line of a terminal
progress_words.py   how it is said how contenders stand
errors.py       errors as people read them
"""
