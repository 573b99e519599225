"""The data that arms begin with: made once, kept between runs, and the room that they take.

snapshots.py       data loaded once for each server and dataset
loading.py         making these data: loaded into a cluster, or prepared on a copy
recipes.py         what a snapshot is made of, and the key that follows from it
snapshot_shelf.py  what a run takes from the cache of snapshots and puts there
snapshot_cache.py  that cache: whole or not at all, checked when taken
cache_room.py      how much it may hold, and what goes first
cache_contents.py  what is in the whole cache, and taking it out
room.py            whether there is room for the data of a study, and making some
equal_data.py      whether arms hold the same rows, also later on
"""
