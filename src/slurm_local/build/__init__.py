"""Programs and packages that a local cluster is made of: fetched or built once, kept in the cache."""
