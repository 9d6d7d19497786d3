"""The net under every change of structure: what the operator decides and says in thousands of situations.

Two digests are kept. One is over decisions: actions, subjects, reasons, conditions, look-again times. The other
is over texts: the sentences that people read. A change of structure leaves both as they are.
"""
