#!/bin/bash
# A Job from the CronJob of every check of this cluster that runs after its creation, as `kubectl create job --from` makes it.
exec python3 - <<'PROGRAM'
import json, os, ssl, sys, time, urllib.request

SECRETS = "/var/run/secrets/kubernetes.io/serviceaccount"
HOST = "https://" + os.environ["KUBERNETES_SERVICE_HOST"] + ":" + os.environ["KUBERNETES_SERVICE_PORT"]
NAMESPACE = os.environ["K8S_POD_NAMESPACE"]
CONTEXT = ssl.create_default_context(cafile=SECRETS + "/ca.crt")


def call(path, body=None):
    with open(SECRETS + "/token") as token:
        headers = {"Authorization": "Bearer " + token.read().strip(), "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(HOST + path, data, headers), context=CONTEXT, timeout=30) as answer:
        return json.load(answer)


def job_of(cron):
    """It belongs to the CronJob, whose history limits count for it."""
    meta, template = cron["metadata"], cron["spec"]["jobTemplate"]
    name = meta["name"][:40].rstrip("-") + "-manual-" + str(int(time.time()))
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": meta["name"], "uid": meta["uid"], "controller": True}
    given = template.get("metadata", {})
    notes = {**given.get("annotations", {}), "cronjob.kubernetes.io/instantiate": "manual"}
    return {
        "apiVersion": "batch/v1", "kind": "Job", "spec": template["spec"],
        "metadata": {"name": name, "labels": given.get("labels", {}), "annotations": notes, "ownerReferences": [owner]},
    }


checks = call("/apis/slurm.nebius.ai/v1alpha1/namespaces/" + NAMESPACE + "/activechecks")["items"]
failed = False
for check in checks:
    spec = check.get("spec") or {}
    if spec.get("slurmClusterRefName") != os.environ["CLUSTER"] or not spec.get("runAfterCreation", True):
        continue
    try:
        cron = call("/apis/batch/v1/namespaces/" + NAMESPACE + "/cronjobs/" + spec["name"])
        made = call("/apis/batch/v1/namespaces/" + NAMESPACE + "/jobs", job_of(cron))
        print("started", made["metadata"]["name"])
    except OSError as error:
        failed = True
        print(spec["name"] + ": " + str(error), file=sys.stderr)
sys.exit(failed)
PROGRAM
