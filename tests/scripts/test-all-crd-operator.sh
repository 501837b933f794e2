#!/usr/bin/env bash
# Runs the examples of all kinds that an operator serves, and checks what they print. It needs a cluster in which an operator with the
# plugins ai-llm-model, llm-model and llm-deployment watches the namespace ($NAMESPACE, else default).
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$root/tests/scripts/02-test-operator.sh"

say "a deployment refers to a model"
k apply -f "$root/crds/samples/llmdeployment.yaml"
until_same "deployments" "chat-service 2/2" ready deployments
k wait llmdeployments/chat-service --for=condition=Ready --timeout="${patience}s"
same "models" "gpt-small" "$(k get llmmodels.llm.example.com --no-headers | awk '{ print $1 }')"
same "deployments of models" "chat-service gpt-small" "$(k get llmdeployments --no-headers | awk '{ print $1, $2 }')"
same "services" "chat-service ClusterIP 8080/TCP" "$(k get services --no-headers | awk '$1 != "kubernetes" { print $1, $2, $5 }')"
say "ok"
