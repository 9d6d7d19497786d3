"""Takes out of texts and objects what must not be seen outside a cluster. Linear in the text."""
