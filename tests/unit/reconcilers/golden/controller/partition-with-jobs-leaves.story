-- it runs
-- the NodeSet is gone
Apply           ConfigMap demo/slurm-rehearsal-#1: Rehearsing: testing the new configuration in a throwaway slurmctld before it is used
Wait            partition gpu: PartitionInUse: Partition gpu is not in the spec any more. It takes no new jobs, and is removed with its last. Jobs that have started: 7.
Create          Pod demo/slurm-rehearsal-#1: Rehearsing: started rehearsal slurm-rehearsal-#1
-- the job ends
Apply           ConfigMap demo/slurm-config: Updated: updated ConfigMap slurm-config: data.slurm.conf
DeleteObject    ConfigMap demo/slurm-rehearsal-#1: RehearsalOver: removed rehearsal slurm-rehearsal-#1: slurmctld takes the new configuration
Wait            partition gpu: PartitionInUse: Partition gpu is not in the spec any more. It takes no new jobs, and is removed with its last. Jobs that have started: 7.
Wait            configuration: JobsAtStake: Without partition gpu its jobs would end at once; whether jobs name partition gpu was last seen 10 s ago; Slurm is read again.
WriteSlurm      slurmctld: Reconfigured: told slurmctld to read the new configuration
Apply           ConfigMap demo/slurm-rehearsal-#2: Rehearsing: testing the new configuration in a throwaway slurmctld before it is used
Apply           ConfigMap demo/slurm-config-good: ConfigKept: kept the configuration that slurmctld runs with, to put it back if another one fails
Wait            configuration: JobsAtStake: Without partition gpu its jobs would end at once; whether jobs name partition gpu was last seen 30 s ago; Slurm is read again.
Create          Pod demo/slurm-rehearsal-#2: Rehearsing: started rehearsal slurm-rehearsal-#2
Apply           ConfigMap demo/slurm-config: Updated: updated ConfigMap slurm-config: data.slurm.conf
DeleteObject    ConfigMap demo/slurm-rehearsal-#2: RehearsalOver: removed rehearsal slurm-rehearsal-#2: slurmctld takes the new configuration
Wait            slurmctld: ConfigOnItsWay: The new configuration is on its way to slurmctld.
WriteSlurm      slurmctld: Reconfigured: told slurmctld to read the new configuration
Apply           ConfigMap demo/slurm-config-good: ConfigKept: kept the configuration that slurmctld runs with, to put it back if another one fails
-- in the end
   Ready=True Serving: slurmctld 26.05.5 answers at slurm-controller.demo:6817; slurm-controller-0 is in charge.
   Progressing=False UpToDate
   Degraded=False AsExpected
