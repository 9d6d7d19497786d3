"""rebooter: empties the Kubernetes node it runs on, and reboots it, when conditions ask for that."""
