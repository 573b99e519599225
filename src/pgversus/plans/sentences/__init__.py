"""What changed between two plans, in words.

telling.py   changes to sentences, the same ones together
numbers.py   numbers in sentences
english.py   in English
japanese.py  in Japanese
"""
