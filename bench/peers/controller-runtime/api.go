// The kind AppService in Go, as crds/appservices.apps.example.com.yaml has it.
package main

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type AppServiceSpec struct {
	Replicas int32  `json:"replicas"`
	Image    string `json:"image"`
	Port     int32  `json:"port"`
}

type AppServiceStatus struct {
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	ReadyReplicas      int32              `json:"readyReplicas"`
	Replicas           int32              `json:"replicas"`
	Selector           string             `json:"selector"`
	URL                string             `json:"url"`
}

type AppService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              AppServiceSpec   `json:"spec"`
	Status            AppServiceStatus `json:"status,omitempty"`
}

type AppServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AppService `json:"items"`
}

func (app *AppService) DeepCopy() *AppService {
	copied := *app
	app.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Status.Conditions = slices.Clone(app.Status.Conditions)
	return &copied
}

func (app *AppService) DeepCopyObject() runtime.Object { return app.DeepCopy() }

func (list *AppServiceList) DeepCopyObject() runtime.Object {
	copied := *list
	list.ListMeta.DeepCopyInto(&copied.ListMeta)
	copied.Items = make([]AppService, len(list.Items))
	for i := range list.Items {
		copied.Items[i] = *list.Items[i].DeepCopy()
	}
	return &copied
}

func addToScheme(scheme *runtime.Scheme) {
	version := schema.GroupVersion{Group: "apps.example.com", Version: "v1"}
	scheme.AddKnownTypes(version, &AppService{}, &AppServiceList{})
	metav1.AddToGroupVersion(scheme, version)
}
