// A Website becomes a Deployment, with a volume where it wants one. It uses each part of the SDK once.
package main

import (
	"time"

	"example.com/web-site/pilothouse"
	"example.com/web-site/pilothouse/contract"
)

// Spec is what the user asks for.
type Spec struct {
	Image string `json:"image"`
	// Without it, an autoscaler sets them.
	Replicas *int32 `json:"replicas"`
	// A ConfigMap with the colour.
	Settings string `json:"settings"`
	Storage  bool   `json:"storage"`
	// When it ends.
	Until string `json:"until"`
}

type config struct {
	Registry string `json:"registry"`
}

type settings struct {
	Data struct {
		Colour string `json:"colour"`
	} `json:"data"`
}

type deployment struct {
	Status struct {
		ReadyReplicas int32 `json:"readyReplicas"`
	} `json:"status"`
}

func init() { pilothouse.Reconcile(reconcile) }

func main() {}

func reconcile(request *pilothouse.Request[Spec]) (*pilothouse.Response, error) {
	name, spec := request.Object.Metadata.Name, request.Object.Spec
	if spec.Image == "" {
		return pilothouse.Invalid("spec.image is empty: say which image runs"), nil
	}
	over, err := isOver(spec.Until)
	if err != nil || over {
		return pilothouse.Done().NoChildren().RemovesMany().Status(pilothouse.Any{"readyReplicas": 0}), err
	}
	annotations := pilothouse.Any{}
	if spec.Settings != "" {
		var found settings
		exists, err := pilothouse.Get("v1", "ConfigMap", "", spec.Settings, &found)
		if err != nil {
			return nil, err
		}
		if !exists {
			response := pilothouse.Wait("SettingsMissing", 30, "there is no ConfigMap %s", spec.Settings)
			response.Conditions = []contract.Condition{{Type: "Available", Status: contract.Unknown, Reason: "SettingsMissing"}}
			return response, nil
		}
		annotations["example.com/colour"] = found.Data.Colour
	}
	var configured config
	if err := request.Config(&configured); err != nil {
		return nil, err
	}
	image := spec.Image
	if configured.Registry != "" {
		image = configured.Registry + "/" + image
	}
	var live deployment
	if _, err := request.Child("apps/v1", "Deployment", name, &live); err != nil {
		return nil, err
	}
	ready := live.Status.ReadyReplicas
	response := pilothouse.Done().Status(pilothouse.Any{"readyReplicas": ready})
	if spec.Storage {
		response.Child(claim(name+"-data"), pilothouse.Handled(contract.Create), pilothouse.KeptOnRemoval())
	}
	options := []pilothouse.Option{pilothouse.RecreatedWhenImmutable()}
	if spec.Replicas == nil {
		options = append(options, pilothouse.Unmanaged("/spec/replicas"))
	}
	response.Child(deploymentOf(name, image, annotations, spec.Replicas), options...)
	tell(response, ready, spec.Replicas)
	if spec.Until != "" {
		response.RequeueAfter(60)
	}
	return response, nil
}

func isOver(until string) (bool, error) {
	if until == "" {
		return false, nil
	}
	end, err := time.Parse(time.RFC3339, until)
	if err != nil {
		return false, err
	}
	now, err := pilothouse.Now()
	return !now.Before(end), err
}

func tell(response *pilothouse.Response, ready int32, replicas *int32) {
	wanted := int32(1)
	if replicas != nil {
		wanted = *replicas
	}
	isAvailable, reason, phase := ready >= wanted, "Starting", "starting"
	if isAvailable {
		reason, phase = "AllReady", "serving"
		response.Event(contract.Normal, "Available", "%d Pods are ready", ready)
	}
	response.Condition("Available", isAvailable, reason, "%d of %d Pods are ready", ready, wanted)
	response.Measurement("pods_ready", float64(ready), contract.Label{Key: "phase", Value: phase})
}

func claim(name string) pilothouse.Any {
	return pilothouse.Any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": pilothouse.Any{"name": name},
		"spec": pilothouse.Any{
			"accessModes": []string{"ReadWriteOnce"},
			"resources":   pilothouse.Any{"requests": pilothouse.Any{"storage": "1Gi"}},
		},
	}
}

func deploymentOf(name, image string, annotations pilothouse.Any, replicas *int32) pilothouse.Any {
	labels := pilothouse.Any{"app": name}
	spec := pilothouse.Any{
		"selector": pilothouse.Any{"matchLabels": labels},
		"template": pilothouse.Any{
			"metadata": pilothouse.Any{"labels": labels, "annotations": annotations},
			"spec":     pilothouse.Any{"containers": []pilothouse.Any{{"name": "app", "image": image}}},
		},
	}
	if replicas != nil {
		spec["replicas"] = *replicas
	}
	return pilothouse.Any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": pilothouse.Any{"name": name}, "spec": spec}
}
