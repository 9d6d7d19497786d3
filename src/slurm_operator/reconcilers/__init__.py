"""One folder per subject: what to look at and what to decide. Knows no `await`."""
