// A {{kind}} becomes a Deployment that runs its image.
package main

import "{{group}}/{{name}}/pilothouse"

// Spec is what the user asks for, as in crd.yaml.
type Spec struct {
	// The image that runs.
	Image string `json:"image"`
	// How many Pods run it; 1 if it is not said.
	Replicas *int32 `json:"replicas"`
}

// deployment is what the plugin reads of its child.
type deployment struct {
	Status struct {
		ReadyReplicas int32 `json:"readyReplicas"`
	} `json:"status"`
}

func init() { pilothouse.Reconcile(reconcile) }

// The host calls what init has named.
func main() {}

// reconcile says what shall exist for a {{kind}}, and how it is.
func reconcile(request *pilothouse.Request[Spec]) (*pilothouse.Response, error) {
	name, spec := request.Object.Metadata.Name, request.Object.Spec
	if spec.Image == "" {
		return pilothouse.Invalid("spec.image is empty: say which image runs"), nil
	}
	replicas := int32(1)
	if spec.Replicas != nil {
		replicas = *spec.Replicas
	}
	var live deployment
	if _, err := request.Child("apps/v1", "Deployment", name, &live); err != nil {
		return nil, err
	}
	ready := live.Status.ReadyReplicas
	isAvailable, reason := ready >= replicas, "Starting"
	if isAvailable {
		reason = "AllReady"
	}
	labels := pilothouse.Any{"app": name}
	return pilothouse.Done().
		Child(pilothouse.Any{
			"apiVersion": "apps/v1",
			"kind":       "Deployment",
			"metadata":   pilothouse.Any{"name": name, "labels": labels},
			"spec": pilothouse.Any{
				"replicas": replicas,
				"selector": pilothouse.Any{"matchLabels": labels},
				"template": pilothouse.Any{
					"metadata": pilothouse.Any{"labels": labels},
					"spec":     pilothouse.Any{"containers": []pilothouse.Any{{"name": "app", "image": spec.Image}}},
				},
			},
		}).
		Status(pilothouse.Any{"readyReplicas": ready}).
		Condition("Available", isAvailable, reason, "%d of %d Pods are ready", ready, replicas), nil
}
