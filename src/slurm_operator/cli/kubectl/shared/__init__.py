"""What several commands share: the session, archives, names to propose, commands in a login pod."""
