-- it runs
-- the user changes extraConf
Apply           ConfigMap demo/slurm-rehearsal-#1: Rehearsing: testing the new configuration in a throwaway slurmctld before it is used
Wait            configuration: JobsAtStake: Without partition debug its jobs would end at once; whether jobs name partition debug was last seen 30 s ago; Slurm is read again.
Create          Pod demo/slurm-rehearsal-#1: Rehearsing: started rehearsal slurm-rehearsal-#1
Apply           ConfigMap demo/slurm-config: Updated: updated ConfigMap slurm-config: data.slurm.conf
DeleteObject    ConfigMap demo/slurm-rehearsal-#1: RehearsalOver: removed rehearsal slurm-rehearsal-#1: slurmctld takes the new configuration
-- somebody submits a job to partition debug
Apply           ConfigMap demo/slurm-config: ConfigWithdrawn: took the new configuration back before slurmctld read it. Without partition debug its jobs would end at once; unfinished jobs: 7.
Apply           ConfigMap demo/slurm-rehearsal-#2: Rehearsing: testing the new configuration in a throwaway slurmctld before it is used
Wait            partition debug: PartitionInUse: Partition debug is not in the spec any more. It takes no new jobs, and is removed with its last. Jobs that have started: 7.
Create          Pod demo/slurm-rehearsal-#2: Rehearsing: started rehearsal slurm-rehearsal-#2
Apply           ConfigMap demo/slurm-config: Updated: updated ConfigMap slurm-config: data.slurm.conf
DeleteObject    ConfigMap demo/slurm-rehearsal-#2: RehearsalOver: removed rehearsal slurm-rehearsal-#2: slurmctld takes the new configuration
-- the job ends
Apply           ConfigMap demo/slurm-rehearsal-#1: Rehearsing: testing the new configuration in a throwaway slurmctld before it is used
WriteSlurm      slurmctld: Reconfigured: told slurmctld to read the new configuration
Create          Pod demo/slurm-rehearsal-#1: Rehearsing: started rehearsal slurm-rehearsal-#1
Apply           ConfigMap demo/slurm-config-good: ConfigKept: kept the configuration that slurmctld runs with, to put it back if another one fails
Wait            configuration: JobsAtStake: Without partition debug its jobs would end at once; whether jobs name partition debug was last seen 30 s ago; Slurm is read again.
Apply           ConfigMap demo/slurm-config: Updated: updated ConfigMap slurm-config: data.slurm.conf
DeleteObject    ConfigMap demo/slurm-rehearsal-#1: RehearsalOver: removed rehearsal slurm-rehearsal-#1: slurmctld takes the new configuration
Wait            slurmctld: ConfigOnItsWay: The new configuration is on its way to slurmctld.
WriteSlurm      slurmctld: Reconfigured: told slurmctld to read the new configuration
Apply           ConfigMap demo/slurm-config-good: ConfigKept: kept the configuration that slurmctld runs with, to put it back if another one fails
-- in the end
   Ready=True Serving: slurmctld 26.05.5 answers at slurm-controller.demo:6817; slurm-controller-0 is in charge.
   Progressing=False UpToDate
   Degraded=False AsExpected
