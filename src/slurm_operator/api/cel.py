"""Small pieces of CEL, the language of the API server's own checks.

The API server refuses rules that might cost too much. It takes `==` between optional values for unaffordable,
as it cannot see how long they are, but thinks little of `in`; so that is how values are compared here.
"""


def unchanged(expression: str) -> str:
    """The expression has the same value before and after."""
    return f"{_before(expression)} in [{expression}]"


def kept_once_set(expression: str) -> str:
    """The expression may get a value, and then keeps it."""
    return f"{_before(expression)} in ['', {expression}]"


def _before(expression: str) -> str:
    return expression.replace("self.", "oldSelf.")
