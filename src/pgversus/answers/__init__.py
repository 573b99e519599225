"""The answer that stored results support, as data, which `report` presents as text and charts.

answer.py          the answer to a study, and its caveats as data
validity.py        whether a verdict can be relied on
read.py            from a results folder to an answer
caveats.py         reasons to trust a result less
load_caveats.py    caveats from counters, rates and drift
plans.py           compared plans of all arms, and the restoration of old plans
findings.py        findings of an upgrade check: the effect on each statement of an application
upgrade.py         from the screening and the confirmation of an upgrade check to its findings
timeline.py        changes from each version of a timeline to the next
known_findings.py  findings of an earlier upgrade check
"""
