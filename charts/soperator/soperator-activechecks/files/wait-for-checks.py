"""Waits until every check of a cluster that runs after its creation has ended; fails with the first that did not pass."""

import json
import os
import ssl
import sys
import time
import urllib.request

SECRETS = "/var/run/secrets/kubernetes.io/serviceaccount"
PASSED = ("Complete", "Skipped", "Cancelled")
FAILED = ("Failed", "Error", "Degraded")


def checks():
    url = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
    path = f"/apis/slurm.nebius.ai/v1alpha1/namespaces/{os.environ['NAMESPACE']}/activechecks"
    with open(f"{SECRETS}/token") as token:
        headers = {"Authorization": f"Bearer {token.read().strip()}"}
    context = ssl.create_default_context(cafile=f"{SECRETS}/ca.crt")
    asked = urllib.request.Request(url + path, headers=headers)
    with urllib.request.urlopen(asked, context=context, timeout=30) as answer:
        return json.load(answer)["items"]


def awaited(check):
    """Not those that only comment when they fail."""
    spec = check.get("spec") or {}
    comments = (spec.get("failureReactions") or {}).get("commentSlurmNode")
    is_ours = spec.get("slurmClusterRefName") == os.environ["CLUSTER"]
    return is_ours and spec.get("runAfterCreation", True) and comments is None


def state(check):
    status, spec = check.get("status") or {}, check["spec"]
    if spec.get("checkType", "k8sJob") == "slurmJob":
        return (status.get("slurmJobsStatus") or {}).get("lastRunStatus", "")
    return (status.get("k8sJobsStatus") or {}).get("lastJobStatus", "")


def main():
    told = {}
    while True:
        try:
            found = {one["metadata"]["name"]: state(one) for one in checks() if awaited(one)}
        except OSError as error:
            print(f"the API server does not answer: {error}", flush=True)
            time.sleep(10)
            continue
        for name, now in found.items():
            if told.get(name) != now:
                print(f"{name}: {now or 'has not run'}", flush=True)
        told = found
        if broken := [name for name, now in found.items() if now in FAILED]:
            print(f"did not pass: {', '.join(broken)}", file=sys.stderr)
            return 1
        if all(now in PASSED for now in found.values()):
            return 0
        time.sleep(10)


sys.exit(main())
