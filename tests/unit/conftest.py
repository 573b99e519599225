import os

from hypothesis import settings

# No deadline: a busy host is not a failure. Fewer examples than usual, because the suite runs at every save.
settings.register_profile("unit", deadline=None, max_examples=60)
settings.load_profile("unit")

# English messages, also under a Japanese locale.
os.environ["LC_ALL"] = "C.UTF-8"
