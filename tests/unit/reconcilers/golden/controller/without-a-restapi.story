-- it runs
-- the user changes extraConf
Apply           ConfigMap demo/slurm-rehearsal-#1: Rehearsing: testing the new configuration in a throwaway slurmctld before it is used
Create          Pod demo/slurm-rehearsal-#1: Rehearsing: started rehearsal slurm-rehearsal-#1
Apply           ConfigMap demo/slurm-config: Updated: updated ConfigMap slurm-config: data.slurm.conf
DeleteObject    ConfigMap demo/slurm-rehearsal-#1: RehearsalOver: removed rehearsal slurm-rehearsal-#1: slurmctld takes the new configuration
Wait            slurmctld: CannotReconfigure: The new files are in place, but slurmctld cannot be told: there is no RestApi. A RestApi for this Controller is needed for that.
-- a RestApi comes
WriteSlurm      slurmctld: Reconfigured: told slurmctld to read the new configuration
Apply           ConfigMap demo/slurm-config-good: ConfigKept: kept the configuration that slurmctld runs with, to put it back if another one fails
-- in the end
   Ready=True Serving: slurmctld 26.05.5 answers at slurm-controller.demo:6817; slurm-controller-0 is in charge.
   Progressing=False UpToDate
   Degraded=False AsExpected
