"""What a local cluster borrows from the machine: namespaces, networks, cgroups, processes."""
