"""What reads from outside, fed with bytes that nobody wrote: `make fuzz`."""
