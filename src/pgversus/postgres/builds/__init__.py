"""Where PostgreSQL binaries come from.

model.py         what a build is
families.py      the sources: how each lists, fetches and unpacks
zonky_client.py  the Maven client, run as a process of its own
index.py         lists of released versions, kept for a day
resolve.py       which family serves all arms of a comparison
install.py       one build into the cache: atomic, checked, once
in_cache.py      builds in the cache: which are in use, and taking them out
checksums.py     SHA-256 of artifacts that are known
inspect.py       what a bin directory holds
provide.py       all of it together: names in, builds out
"""
