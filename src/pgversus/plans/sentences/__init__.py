"""What changed between two plans, in words.

telling.py  changes to sentences, the same ones together
changes.py  a sentence for each kind of change
numbers.py  numbers in sentences
"""
