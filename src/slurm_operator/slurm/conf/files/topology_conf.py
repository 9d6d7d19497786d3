"""topology.conf: the option tables of the tree, block and ring plugins. torus3d needs topology.yaml."""

from slurm_operator.slurm.conf.keys import Key, keys, table
from slurm_operator.slurm.conf.values import text, uint32

TOPOLOGY_CONF = table(
    Key(
        "SwitchName",
        text,
        repeats=True,
        options=table(*keys(text, "Nodes Switches"), Key("LinkSpeed", uint32)),
    ),
    Key("BlockName", text, repeats=True, options=table(Key("Nodes", text))),
    Key("BlockSizes", text),
    Key("RingName", text, repeats=True, options=table(Key("Nodes", text))),
)
