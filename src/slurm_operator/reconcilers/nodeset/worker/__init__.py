"""What happens to one worker: drained, removed, kept, back in service."""
