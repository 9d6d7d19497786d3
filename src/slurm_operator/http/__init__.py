"""HTTP and TLS to one server: below kube and slurmrest, which do not know each other."""
