"""Questions answered as data, by the decisions of the operator. Writes only what a user asks for."""
