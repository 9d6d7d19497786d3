"""A virtual machine as a Kubernetes node with cgroup v2, whatever this machine has: QEMU, a kernel and a kubelet."""
