"""`kubectl slurm …`: the command tree. Each subcommand lives in a module of its own."""

from slurm_operator.cli.lazy import LazyGroup, Table

COMMANDS: Table = {
    "bundle": ("slurm_operator.cli.kubectl.bundle", "bundle", "Pack what support needs, without secrets."),
    "completion": ("slurm_operator.cli.kubectl.completion", "completion", "Print a shell's completion."),
    "doctor": ("slurm_operator.cli.kubectl.doctor", "doctor", "Check whether this Kubernetes fits."),
    "drain": ("slurm_operator.cli.kubectl.drain", "drain", "Let no new job start on these Slurm nodes."),
    "explain": ("slurm_operator.cli.kubectl.explain", "explain", "Say why something is as it is."),
    "logs": ("slurm_operator.cli.kubectl.logs", "logs", "Show the logs of Slurm's daemons."),
    "plan": ("slurm_operator.cli.kubectl.plan", "plan", "Say what a change would do; nothing is done."),
    "record": ("slurm_operator.cli.kubectl.record", "record", "Replay what the operator decided, and why."),
    "status": ("slurm_operator.cli.kubectl.status", "status", "Show a Slurm cluster on one screen."),
    "top": ("slurm_operator.cli.kubectl.top", "top", "Watch nodes and jobs live."),
    "undrain": ("slurm_operator.cli.kubectl.drain", "undrain", "Let jobs start on these nodes again."),
}

kubectl_slurm = LazyGroup(COMMANDS, help="Looks at Slurm clusters on Kubernetes and explains them.")
