"""Small changes of the code that keeps the promise, made by a rule, and who notices them."""
