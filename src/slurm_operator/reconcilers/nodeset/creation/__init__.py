"""How one worker is made: pod, volumes, revision, place."""
