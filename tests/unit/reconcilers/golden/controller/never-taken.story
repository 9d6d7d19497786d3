-- it runs
-- the user changes extraConf
Apply           ConfigMap demo/slurm-rehearsal-#1: Rehearsing: testing the new configuration in a throwaway slurmctld before it is used
Create          Pod demo/slurm-rehearsal-#1: Rehearsing: started rehearsal slurm-rehearsal-#1
Apply           ConfigMap demo/slurm-config: Updated: updated ConfigMap slurm-config: data.slurm.conf
DeleteObject    ConfigMap demo/slurm-rehearsal-#1: RehearsalOver: removed rehearsal slurm-rehearsal-#1: slurmctld takes the new configuration
Wait            slurmctld: ConfigOnItsWay: The new configuration is on its way to slurmctld.
WriteSlurm      slurmctld: Reconfigured: told slurmctld to read the new configuration
Wait            slurmctld: Verifying: slurmctld was told to read the new configuration; its report is awaited.
Apply           ConfigMap demo/slurm-config: Updated: updated ConfigMap slurm-config: data.slurm.conf
Wait            configuration: ConfigPutBack: The configuration was put back to the previous one: slurmctld was told 6 times to read it and goes on with the previous files; its log says why. Change it to try again.
-- in the end
   Ready=True Serving: slurmctld 26.05.5 answers at slurm-controller.demo:6817; slurm-controller-0 is in charge.
   Progressing=False ConfigPutBack: No changes will be made until this is fixed.
   Degraded=True ConfigPutBack: The configuration was put back to the previous one: slurmctld was told 6 times to read it and goes on with the previous files; its log says why. Change it to try again. slurmctld goes on with the previous configuration.
