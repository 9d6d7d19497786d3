GenerateSecret  Secret demo/slurm-auth-slurm: KeyGenerated: made a key in Secret slurm-auth-slurm; it stays when the Controller is deleted
GenerateSecret  Secret demo/slurm-auth-jwt: KeyGenerated: made a key in Secret slurm-auth-jwt; it stays when the Controller is deleted
Apply           Service demo/slurm-controller-internal: Created: created Service slurm-controller-internal
Apply           Service demo/slurm-controller: Created: created Service slurm-controller
Apply           Service demo/slurm-workers-slurm: Created: created Service slurm-workers-slurm
Apply           PodDisruptionBudget demo/slurm-workers-pdb-slurm: Created: created PodDisruptionBudget slurm-workers-pdb-slurm
Apply           Secret demo/slurm-signing-keys: Created: created Secret slurm-signing-keys
Apply           Secret demo/slurm-auth-slurm-ring: KeyRing: wrote the key ring slurm-auth-slurm-ring: keys that daemons accept
Apply           ConfigMap demo/slurm-rehearsal-#1: Rehearsing: testing the new configuration in a throwaway slurmctld before it is used
Create          Pod demo/slurm-rehearsal-#1: Rehearsing: started rehearsal slurm-rehearsal-#1
Apply           ConfigMap demo/slurm-config: Created: created ConfigMap slurm-config
DeleteObject    ConfigMap demo/slurm-rehearsal-#1: RehearsalOver: removed rehearsal slurm-rehearsal-#1: slurmctld takes the new configuration
Apply           StatefulSet demo/slurm-controller: Created: created StatefulSet slurm-controller
Apply           ConfigMap demo/slurm-config-good: ConfigKept: kept the configuration that slurmctld runs with, to put it back if another one fails
-- in the end
   Ready=True Serving: slurmctld 26.05.5 answers at slurm-controller.demo:6817; slurm-controller-0 is in charge.
   Progressing=False UpToDate
   Degraded=False AsExpected
