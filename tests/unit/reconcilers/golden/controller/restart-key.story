-- it runs
-- the user changes extraConf
Apply           ConfigMap demo/slurm-rehearsal-#1: Rehearsing: testing the new configuration in a throwaway slurmctld before it is used
Create          Pod demo/slurm-rehearsal-#1: Rehearsing: started rehearsal slurm-rehearsal-#1
Apply           ConfigMap demo/slurm-config: Updated: updated ConfigMap slurm-config: data.slurm.conf
DeleteObject    ConfigMap demo/slurm-rehearsal-#1: RehearsalOver: removed rehearsal slurm-rehearsal-#1: slurmctld takes the new configuration
Apply           Service demo/slurm-controller-internal: Updated: updated Service slurm-controller-internal: spec.ports[name=slurmctld].port
Apply           Service demo/slurm-controller: Updated: updated Service slurm-controller: spec.ports[name=slurmctld-7817].name, spec.ports[name=slurmctld-7817].port, spec.ports[name=slurmctld-7817].protocol and 1 more
Apply           StatefulSet demo/slurm-controller: Updated: updated StatefulSet slurm-controller: spec.template.spec.containers[name=slurmctld].ports[name=slurmctld].containerPort
DeleteDaemonPod Pod demo/slurm-controller-0: Restarted: restarted slurmctld in pod slurm-controller-0: changed in the configuration: SlurmctldPort
Apply           ConfigMap demo/slurm-config-good: ConfigKept: kept the configuration that slurmctld runs with, to put it back if another one fails
-- in the end
   Ready=True Serving: slurmctld 26.05.5 answers at slurm-controller.demo:6817; slurm-controller-0 is in charge.
   Progressing=False UpToDate
   Degraded=False AsExpected
