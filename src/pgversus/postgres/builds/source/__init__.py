"""Builds that pgversus makes itself, from PostgreSQL's source.

orders.py        from names of servers to what is to be built, found and checked beforehand
order.py         one of them, and the name under which it is known
source.py        what can be built
tree.py          source trees and commits on this host
git.py           calls of git that run nothing that a repository names
archive.py       tarballs
known.py         sources of releases: the user's own, earlier ones, apt's
debian.py        by way of the machine's own apt
download.py      by an address that the user gives
stored.py        tarballs in the cache, with what they must be
tools.py         programs and headers that a build needs
recipe.py        the commands
build.py         one build into the cache: made once, whole or not at all
making.py        running the commands
build_output.py  what they print: steps, and the first error
"""
