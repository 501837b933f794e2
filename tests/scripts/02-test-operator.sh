#!/usr/bin/env bash
# Checks the whole way from a model to running Pods, and back: create, get, describe, scale, delete. It needs a cluster in which an
# operator with the plugin ai-llm-model watches the namespace ($NAMESPACE, else default).
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

say "a model is served"
k apply -f "$root/crds/samples/llmmodel.yaml"
until_same "deployments" "llmmodel-llama-3-70b-serving 3/3" ready deployments
k wait $models/llama-3-70b-serving --for=condition=Ready --timeout="${patience}s"
same "the number of Pods" "3" "$(k get pods -o name | grep -c '^pod/llmmodel-llama-3-70b-serving-')"
same "models" "NAME                  MODEL
llama-3-70b-serving   llama-3-70b" "$(k get $models)"
k describe $models llama-3-70b-serving | grep -q "ModelServerReady"
k get $models llama-3-70b-serving -o yaml >/dev/null
same "the subresources" '{"scale":{"labelSelectorPath":".status.selector","specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"},"status":{}}' \
  "$(kubectl get crd llmmodels.ai.example.com -o jsonpath='{.spec.versions[0].subresources}')"
k get events --sort-by='.lastTimestamp' | tail -20 | grep -q "ModelServerReady"
k delete $models llama-3-70b-serving

say "a model is created"
k apply -f - <<YAML
apiVersion: ai.example.com/v1
kind: LLMModel
metadata:
  name: my-new-model
spec:
  modelName: llama-3-8b
  replicas: 2
  gpuType: A100
YAML
until_same "replicas" "2" k get deployment llmmodel-my-new-model -o 'jsonpath={.spec.replicas}'

say "it is scaled by a patch"
k patch $models my-new-model --type=json -p='[{"op": "replace", "path": "/spec/replicas", "value":5}]'
until_same "replicas" "5" k get deployment llmmodel-my-new-model -o 'jsonpath={.spec.replicas}'

say "it is deleted, and nothing is left"
k delete $models my-new-model
until_same "deployments" "" k get deployments -o name
until_same "pods" "" k get pods -o name
say "ok"
