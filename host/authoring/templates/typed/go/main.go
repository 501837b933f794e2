// A {{kind}} becomes a ConfigMap that shows its spec. Its types are in spec.go.
package main

import {{imports}}

func init() { pilothouse.Reconcile(reconcile) }

// The host calls what init has named.
func main() {}

// reconcile says what shall exist for a {{kind}}, and how it is.
func reconcile(request *pilothouse.Request[Spec]) (*pilothouse.Response, error) {
	name := request.Object.Metadata.Name
	return pilothouse.Done().Child(pilothouse.Any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   pilothouse.Any{"name": name{{namespace}}},
		"data":       dataOf(request.Object.Spec),
	}), nil
}

// dataOf says what the ConfigMap says of a spec: values, and of what is longer how many entries it has, or that it is set.
func dataOf(spec Spec) map[string]string {
	data := map[string]string{}
{{shown}}	return data
}
