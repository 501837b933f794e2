// Package pilothouse is what a plugin of Pilothouse in Go is written with: typed requests and responses over the contract. It never talks
// to a cluster: the host does. `pilothouse new` has put it here; a newer one comes the same way.
package pilothouse

import (
	"encoding/json"
	"errors"
	"fmt"

	"{{group}}/{{name}}/pilothouse/contract"
)

// Any is a Kubernetes object, or a part of one, without a type of its own.
type Any = map[string]any

// Metadata of an object, as far as plugins read it.
type Metadata struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               string            `json:"uid,omitempty"`
	Generation        int64             `json:"generation,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
	CreationTimestamp string            `json:"creationTimestamp,omitempty"`
	DeletionTimestamp string            `json:"deletionTimestamp,omitempty"`
}

// Object of the kind that the plugin reconciles.
type Object[Spec any] struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   Metadata        `json:"metadata"`
	Spec       Spec            `json:"spec"`
	Status     json.RawMessage `json:"status,omitempty"`
}

// Request is the input of one reconcile.
type Request[Spec any] struct {
	// The object being reconciled.
	Object Object[Spec]
	// The children of earlier answers that could not be written, with the reasons.
	Refused  []contract.RefusedChild
	children []contract.LiveChild
	config   string
}

// Child reads the live child of that kind and name into a value, and says whether there is one. A child is read only when it is asked for.
func (r *Request[Spec]) Child(apiVersion, kind, name string, into any) (bool, error) {
	live := r.find(apiVersion, kind, name)
	if live == nil {
		return false, nil
	}
	if err := json.Unmarshal([]byte(live.Object), into); err != nil {
		return false, fmt.Errorf("cannot read child %s %s: %w", kind, name, err)
	}
	return true, nil
}

// Children gives the live children of a kind, as JSON texts in the order of their names.
func (r *Request[Spec]) Children(apiVersion, kind string) []string {
	var found []string
	for _, child := range r.children {
		if head := headOf(child.Object); head.APIVersion == apiVersion && head.Kind == kind {
			found = append(found, child.Object)
		}
	}
	return found
}

// Readiness says how far the live child of that kind and name is; nil if there is none.
func (r *Request[Spec]) Readiness(apiVersion, kind, name string) *contract.Readiness {
	if live := r.find(apiVersion, kind, name); live != nil {
		return &live.Readiness
	}
	return nil
}

// Config reads the plugin's configuration into a value, and leaves that as it is where there is none.
func (r *Request[Spec]) Config(into any) error {
	if err := json.Unmarshal([]byte(r.config), into); err != nil {
		return fmt.Errorf("cannot read the plugin's configuration: %w", err)
	}
	return nil
}

func (r *Request[Spec]) find(apiVersion, kind, name string) *contract.LiveChild {
	for i, child := range r.children {
		head := headOf(child.Object)
		if head.APIVersion == apiVersion && head.Kind == kind && head.Metadata.Name == name {
			return &r.children[i]
		}
	}
	return nil
}

// What tells an object from others.
type head struct {
	APIVersion string
	Kind       string
	Metadata   struct{ Name string }
}

// The host passes no text that is not an object, so there is no error to tell.
func headOf(object string) (found head) {
	_ = json.Unmarshal([]byte(object), &found)
	return found
}

// reconcile is what the host calls.
var reconcile func(*contract.Request) *contract.Response

// Reconcile makes a function the plugin: it is called for each object whenever that, a child or a lookup has changed. Call it once, from init.
func Reconcile[Spec any](function func(*Request[Spec]) (*Response, error)) {
	reconcile = Answer(function)
}

// Answer makes of a function over types one over what crosses.
func Answer[Spec any](function func(*Request[Spec]) (*Response, error)) func(*contract.Request) *contract.Response {
	return func(raw *contract.Request) *contract.Response {
		request := &Request[Spec]{Refused: raw.Refused, children: raw.Children, config: raw.Config}
		if err := json.Unmarshal([]byte(raw.Object), &request.Object); err != nil {
			return &Invalid("the object does not fit this plugin: %v", err).Response
		}
		response, err := function(request)
		if err == nil {
			err = response.err
		}
		if err != nil {
			response = ofError(err)
		}
		return &response.Response
	}
}

// The verdict that fits: what an administrator of the cluster must settle waits, everything else is tried again.
func ofError(err error) *Response {
	var refused *contract.LookupError
	if !errors.As(err, &refused) {
		return Retry("%v", err)
	}
	if refused.Refusal == contract.NotInstalled {
		return Wait("KindNotInstalled", 300, "%v", err)
	}
	return Wait("LookupDenied", 60, "%v", err)
}
