-- it runs
-- the user changes extraConf
Apply           ConfigMap demo/slurm-rehearsal-#1: Rehearsing: testing the new configuration in a throwaway slurmctld before it is used
Create          Pod demo/slurm-rehearsal-#1: Rehearsing: started rehearsal slurm-rehearsal-#1
Wait            configuration: RehearsalRefused: slurmctld does not start with this configuration: error: cannot find plugin; fatal: failed to initialize job_submit plugin
-- the user changes extraConf
DeleteObject    ConfigMap demo/slurm-rehearsal-#1: RehearsalOver: removed rehearsal slurm-rehearsal-#1: its files are in use
-- in the end
   Ready=True Serving: slurmctld 26.05.5 answers at slurm-controller.demo:6817; slurm-controller-0 is in charge.
   Progressing=False UpToDate
   Degraded=False AsExpected
