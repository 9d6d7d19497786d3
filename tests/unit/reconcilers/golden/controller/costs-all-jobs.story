-- it runs
-- the user changes extraConf
Wait            configuration: JobsAtStake: If SelectType changes, all jobs, running and pending, are lost; unfinished jobs: 7, 8.
-- the jobs end
Apply           ConfigMap demo/slurm-rehearsal-#1: Rehearsing: testing the new configuration in a throwaway slurmctld before it is used
Wait            configuration: JobsAtStake: If SelectType changes, all jobs, running and pending, are lost; whether jobs are left was last seen 30 s ago; Slurm is read again.
Create          Pod demo/slurm-rehearsal-#1: Rehearsing: started rehearsal slurm-rehearsal-#1
Apply           ConfigMap demo/slurm-config: Updated: updated ConfigMap slurm-config: data.slurm.conf
DeleteObject    ConfigMap demo/slurm-rehearsal-#1: RehearsalOver: removed rehearsal slurm-rehearsal-#1: slurmctld takes the new configuration
DeleteDaemonPod Pod demo/slurm-controller-0: Restarted: restarted slurmctld in pod slurm-controller-0: changed in the configuration: SelectType
Apply           ConfigMap demo/slurm-config-good: ConfigKept: kept the configuration that slurmctld runs with, to put it back if another one fails
-- in the end
   Ready=True Serving: slurmctld 26.05.5 answers at slurm-controller.demo:6817; slurm-controller-0 is in charge.
   Progressing=False UpToDate
   Degraded=False AsExpected
