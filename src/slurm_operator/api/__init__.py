"""The CRDs as frozen models: fields, defaults, problems, child names. Knows no client."""
