"""NodeConfigurator: a pod on every Kubernetes node, with the rebooter or a container of the user's own."""

from slurm_operator.api.nebius.nodeconfigurator import NodeConfigurator
from slurm_operator.manifests import kinds
from slurm_operator.plan.reconciler import Reconciler
from slurm_operator.reconcilers.nebius.nodeconfigurator.decide import decide
from slurm_operator.reconcilers.nebius.nodeconfigurator.observe import Seen, observe
from slurm_operator.reconcilers.nebius.nodeconfigurator.status import status

RECONCILER = Reconciler[Seen](
    name="nodeconfigurator",
    kind=NodeConfigurator.KIND,
    about=NodeConfigurator,
    observe=observe,
    decide=decide,
    status=status,
    validates_itself=True,
    children=(kinds.DAEMON_SET, kinds.SERVICE_ACCOUNT, kinds.ROLE, kinds.ROLE_BINDING),
)
