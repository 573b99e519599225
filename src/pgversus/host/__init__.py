"""The machine that runs it all.

directories.py  where the cache, a run's data and its sockets lie
identity.py     which user programs run as that others have a say in
ownership.py    files that change hands between root and that user
commands.py     running a program to its end, with an environment of our own
output.py       what a program prints, abridged where it is long
processors.py   which processors clients and servers run on
pausable.py     a program that is stopped and continued
output_file.py  writing a file that the user names
guard.py        cleans up after pgversus when pgversus itself is killed
leftovers.py    ends and removes what a run that died left behind
fonts.py        whether the writing of a language can be drawn
facts.py        processor, memory, kernel, file system
full_disk.py    telling a full disk from other failures
private.py      files and directories that only their owner reads
hashes.py       telling files apart by their content
trees.py        frozen directory trees: what is in them, and taking them elsewhere by hard links
reflink.py      whether copies can share blocks
in_use.py       shared locks on directories that may be removed
counters.py     what the host has done so far: processors, waiting, disk
process_tree.py processor time and memory of a server's processes together
beside.py       work in a thread that ends with a block of code
lost_time.py    whether a program was stopped, the machine slept or its clock was set
page_cache.py   making the kernel forget files, or read them in
"""
