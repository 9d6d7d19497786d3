"""What is wrong with settings."""


class SettingsProblem(Exception):  # noqa: N818 - a problem is the user's to fix, not an error of ours
    """Something in the settings that cannot be: which, where, and what would do."""
