import os

from hypothesis import settings

# No deadline: a busy host is no reason to fail. Fewer examples than usual: the suite runs at every save.
settings.register_profile("unit", deadline=None, max_examples=60)
settings.load_profile("unit")

# Whoever runs this in Japan is told things in English here as well.
os.environ["LC_ALL"] = "C.UTF-8"
