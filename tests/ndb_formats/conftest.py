"""One Hypothesis profile: no deadline, since a shared machine is not a stopwatch."""

from hypothesis import settings

settings.register_profile("ndb", deadline=None, print_blob=True)
settings.load_profile("ndb")
