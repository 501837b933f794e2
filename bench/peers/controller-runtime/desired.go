// What the plugin app-service says (plugins/app-service/src), and the labels that the host adds: children and status. The
// functions set their own fields in place, so that defaults and other people's fields stay, and what is right compares equal.
package main

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func labelsOf(app *AppService) map[string]string {
	return map[string]string{"app.kubernetes.io/name": app.Name, "app.kubernetes.io/component": "web"}
}

func addLabels(all *map[string]string, labels map[string]string) {
	if *all == nil {
		*all = map[string]string{}
	}
	for key, value := range labels {
		(*all)[key] = value
	}
}

func setMetadata(app *AppService, metadata *metav1.ObjectMeta) {
	addLabels(&metadata.Labels, labelsOf(app))
	addLabels(&metadata.Labels, map[string]string{
		"app.kubernetes.io/managed-by": "pilothouse",
		"pilothouse.dev/owner-uid":     string(app.UID),
		"pilothouse.dev/plugin":        "app-service",
	})
}

func setDeployment(app *AppService, deployment *appsv1.Deployment) {
	setMetadata(app, &deployment.ObjectMeta)
	replicas := app.Spec.Replicas
	deployment.Spec.Replicas = &replicas
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf(app)}
	addLabels(&deployment.Spec.Template.Labels, labelsOf(app))
	containers := &deployment.Spec.Template.Spec.Containers
	if len(*containers) != 1 || (*containers)[0].Name != "app" {
		*containers = []corev1.Container{{Name: "app"}}
	}
	container := &(*containers)[0]
	container.Image = app.Spec.Image
	container.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: app.Spec.Port, Protocol: corev1.ProtocolTCP}}
	if container.ReadinessProbe == nil {
		container.ReadinessProbe = &corev1.Probe{}
	}
	container.ReadinessProbe.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromString("http")}
}

func setService(app *AppService, service *corev1.Service) {
	setMetadata(app, &service.ObjectMeta)
	service.Spec.Type = corev1.ServiceTypeClusterIP
	service.Spec.Selector = labelsOf(app)
	service.Spec.Ports = []corev1.ServicePort{
		{Name: "http", Port: 80, TargetPort: intstr.FromString("http"), Protocol: corev1.ProtocolTCP},
	}
}

func setStatus(app *AppService, deployment *appsv1.Deployment) {
	live, status := &deployment.Status, &app.Status
	status.Replicas, status.ReadyReplicas = live.Replicas, live.ReadyReplicas
	status.Selector = "app.kubernetes.io/component=web,app.kubernetes.io/name=" + app.Name
	status.URL = fmt.Sprintf("http://%s.%s.svc", app.Name, app.Namespace)
	status.ObservedGeneration = app.Generation
	set := func(kind string, holds bool, reason, message string) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: statusOf(holds), Reason: reason, Message: message, ObservedGeneration: app.Generation,
		})
	}
	ready := live.ObservedGeneration >= deployment.Generation &&
		live.ReadyReplicas-(live.Replicas-live.UpdatedReplicas) >= app.Spec.Replicas
	reason := "Progressing"
	if ready {
		reason = "Available"
	}
	message := fmt.Sprintf("%d of %d replicas ready", live.ReadyReplicas, app.Spec.Replicas)
	set("Ready", ready, reason, message)
	if ready {
		meta.RemoveStatusCondition(&status.Conditions, "Reconciling")
	} else {
		set("Reconciling", true, reason, message)
	}
	set("Progressing", !ready, reason, message)
	set("Degraded", false, reason, message)
	minimum := "NoReplicasAvailable"
	if live.AvailableReplicas > 0 {
		minimum = "ReplicasAvailable"
	}
	set("Available", live.AvailableReplicas > 0, minimum, fmt.Sprintf("%d replicas available", live.AvailableReplicas))
}

func statusOf(holds bool) metav1.ConditionStatus {
	if holds {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}
