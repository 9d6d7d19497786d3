"""What the Security Profiles Operator's own definition of an AppArmorProfile says of the fields that we use."""

from testing.foreign_kinds import definition

SPEC = {"type": "object", "properties": {"policy": {"type": "string"}}}
STATUS = {"type": "object", "properties": {"status": {"type": "string"}}}

APP_ARMOR_PROFILES = definition(
    "security-profiles-operator.x-k8s.io", "AppArmorProfile", SPEC, version="v1alpha1", status=STATUS
)
