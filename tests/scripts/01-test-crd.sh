#!/usr/bin/env bash
# Checks the first layer: the definition of LLMModel alone. Objects are stored and printed, and nothing runs. It needs a cluster in
# which no operator watches the namespace ($NAMESPACE, else default).
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

say "the definition is installed"
kubectl apply -f "$root/crds/llmmodels.ai.example.com.yaml"
kubectl wait --for=condition=Established crd/llmmodels.ai.example.com --timeout="${patience}s"
kubectl get crds | grep llmmodels.ai.example.com
kubectl describe crd llmmodels.ai.example.com >/dev/null

say "there is no model yet"
same "models" "" "$(k get $models 2>/dev/null)"

say "a model is stored and printed"
k apply -f "$root/crds/samples/llmmodel.yaml"
same "models" "NAME                  MODEL
llama-3-70b-serving   llama-3-70b" "$(k get $models)"
same "the short name" "NAME                  MODEL
llama-3-70b-serving   llama-3-70b" "$(k get llm)"

say "nothing runs"
same "deployments" "" "$(k get deployments 2>/dev/null)"
same "pods" "" "$(k get pods 2>/dev/null)"

say "a wrong model is refused"
if k patch $models llama-3-70b-serving --type=merge -p '{"spec":{"replicas":-1}}' 2>/dev/null; then
  echo "negative replicas are taken" >&2
  exit 1
fi

k delete -f "$root/crds/samples/llmmodel.yaml"
say "ok"
