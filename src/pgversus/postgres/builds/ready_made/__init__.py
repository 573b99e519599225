"""Builds that others have made, fetched from package registries.

families.py      the sources: how each lists, fetches and unpacks
zonky_client.py  the Maven client, run as a process of its own
index.py         lists of released versions, kept for a day
resolve.py       which family serves all arms of a comparison
install.py       one build into the cache: atomic, checked, once
checksums.py     SHA-256 of artifacts that are known
"""
