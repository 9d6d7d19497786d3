"""What a worker does before its pod ends, in images without our helper: Slurm's own commands, and a shell."""

# Drains this worker and waits for its jobs and their epilogs, for as long as the pod's grace period lets it.
# It means what `slurm-entry leave` means: a drain that stands keeps its reason, as does a node that is down,
# no answer is not "no jobs", and while nobody can be asked, what runs in this container is the only witness.
#
# Jobs are seen in /proc by the titles of their steps. The name slurmstepd alone says nothing: with cgroup v2
# one that is no step lives as long as slurmd. A step that is over stays, without children, while it cannot
# tell slurmctld so; that of a whole job (extern) has a sleep as its only child.
LEAVE = r"""
if command -v slurm-entry >/dev/null; then exec slurm-entry leave; fi
command -v timeout >/dev/null || timeout() { shift; "$@"; }
me=${SLURMD_NODENAME:-$(hostname)}
unfinished=RUNNING,SUSPENDED,COMPLETING,CONFIGURING,STOPPED,SIGNALING,RESIZING,STAGE_OUT

look() { # Sets node to its states, to unknown where Slurm has no such node, to nothing when it is silent.
  if node=$(timeout 15 scontrol --oneliner show node "$me" 2>&1); then
    case $node in
      *NodeName=*" State="*) node=${node#* State=}; node=+${node%% *}+ ;;
      *) node= ;;
    esac
  else
    case $node in
      *"Node $me not found"* | *"Invalid node name"*) node=unknown ;;
      *) node= ;;
    esac
  fi
}

drain() { # Succeeds when no new job can start here.
  look
  case $node in
    unknown | *+DRAIN[!A-Z]* | *+DOWN[!A-Z]*) return 0 ;;
    '') return 1 ;;
  esac
  timeout 15 scontrol update nodename="$me" state=drain \
    reason="slurm-operator: PodTerminating: the pod is asked to end${POD_UID:+ (pod $POD_UID)}"
}

ask() { # Sets jobs; fails when Slurm gives no answer.
  jobs=$(timeout 15 squeue --noheader --all --format=%A --states="$unfinished" --nodelist="$me" \
    2>/dev/null) || { jobs= && [ "$node" = unknown ]; }
}

tell() {
  for job in $jobs; do
    case " $told " in *" $job "*) continue ;; esac
    told="$told $job"
    timeout 15 scontrol notify "$job" \
      "$me is leaving the cluster; it waits for this job as long as it may. Please finish or requeue."
  done
}

cleans_up() { # An epilog may still run, for longer than its job is in the list.
  look
  case $node in '' | *+COMPLETING[!A-Z]*) return 0 ;; esac
  return 1
}

title() { title=; { read -r title <"/proc/$1/cmdline"; } 2>/dev/null; }

has_steps() {
  for one in /proc/[0-9]*; do
    title "${one##*/}"
    case $title in "slurmstepd: ["*) return 0 ;; esac
  done
  return 1
}

has_work() {
  for one in /proc/[0-9]*; do
    stat=; { read -r stat <"$one/stat"; } 2>/dev/null
    set -- ${stat##*) } # Its state, its parent, and more.
    title "${one##*/}"; own=$title
    title "${2:-0}"
    case $own/$title in
      "slurmstepd: ["*) ;;
      sleep*"/slurmstepd: ["*.extern]*) ;;
      *"/slurmstepd: ["*) return 0 ;;
    esac
  done
  return 1
}

told=; heard=$(date +%s)
while :; do
  if drain; then drained=yes; else drained=no; fi
  if ask; then
    heard=$(date +%s)
    tell
    if [ $drained = yes ] && [ -z "$jobs" ] && ! has_steps && ! cleans_up; then exit 0; fi
  elif [ $(($(date +%s) - heard)) -gt 30 ] && ! has_work; then
    exit 0
  fi
  sleep 2
done
"""
