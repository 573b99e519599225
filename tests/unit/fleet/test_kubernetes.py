"""The manifest in docs/kubernetes.yaml: valid for Kubernetes, and its commands for pgversus."""

from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import pytest
from kubernetes_validate.utils import resources_from_file

from pgversus.cli.main import pgversus

MANIFEST = Path(__file__).parents[3] / "docs" / "kubernetes.yaml"
RESOURCES: list[dict[str, Any]] = resources_from_file(str(MANIFEST))
CONTAINERS = [
    container
    for resource in RESOURCES
    if "template" in resource["spec"]
    for container in resource["spec"]["template"]["spec"]["containers"]
]


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource["kind"])
def test_every_resource_is_valid(resource: dict[str, Any]) -> None:
    kubernetes_validate.validate(resource, kubernetes_validate.latest_version(), strict=True)


def test_an_unknown_field_would_be_found() -> None:
    damaged = {**RESOURCES[0], "spec": {**RESOURCES[0]["spec"], "selectors": {}}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(damaged, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("container", CONTAINERS, ids=lambda container: container["name"])
def test_every_command_has_options_that_pgversus_knows(container: dict[str, Any]) -> None:
    program, *arguments = container["command"]
    assert program == "pgversus"
    command: click.Command = pgversus
    while isinstance(command, click.Group):
        command = command.commands[arguments.pop(0)]
    command.make_context("pgversus", arguments)


def test_services_secrets_and_labels_belong_together() -> None:
    labels = {str(resource["spec"]["template"]["metadata"]["labels"]) for resource in RESOURCES[1:]}
    assert {str(resource["spec"]["selector"]["matchLabels"]) for resource in RESOURCES[1:]} == labels
    assert str(RESOURCES[0]["spec"]["selector"]) in labels
    service, port = RESOURCES[0]["metadata"]["name"], RESOURCES[0]["spec"]["ports"][0]["port"]
    assert f"tls://{service}:{port}" in CONTAINERS[1]["command"]
