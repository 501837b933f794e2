#!/usr/bin/env bash
# Removes what the other scripts made in the namespace ($NAMESPACE, else default). With --crds also the definitions of the kinds, and
# with them all their objects in all namespaces.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

k delete --ignore-not-found -f "$root/crds/samples/llmdeployment.yaml" -f "$root/crds/samples/llmmodel.yaml"
k delete --ignore-not-found $models my-new-model
until_same "deployments" "" k get deployments -o name
until_same "pods" "" k get pods -o name
if [ "${1:-}" = --crds ]; then
  kubectl delete --ignore-not-found -f "$root/crds/llmmodels.ai.example.com.yaml" \
    -f "$root/crds/llmmodels.llm.example.com.yaml" -f "$root/crds/llmdeployments.llm.example.com.yaml"
fi
say "ok"
