"""The answer that stored results support, as data: what `report` words and draws.

answer.py          the answer to a study, and its caveats as data
validity.py        whether a verdict can be relied on
read.py            from a results folder to an answer
caveats.py         reasons to trust a result less
load_caveats.py    caveats from counters, rates and drift
plans.py           compared plans of all arms, and what restores an old plan
upgrade.py         what an upgrade does to each statement of an application
timeline.py        what changes from each version of a timeline to the next
known_findings.py  what an earlier upgrade check found
"""
