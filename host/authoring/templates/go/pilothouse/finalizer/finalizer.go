// Package finalizer gives the objects of a plugin a finalizer: a plugin that imports it is asked when an object is being deleted, until it
// answers Done. Only what is outside of the cluster needs that; children go by themselves.
package finalizer

import (
	"{{group}}/{{name}}/pilothouse"
	"{{group}}/{{name}}/pilothouse/contract"
)

var finalize func(*contract.Request) *contract.Response

// Finalize makes a function what the host calls instead of that of pilothouse.Reconcile while an object is being deleted.
func Finalize[Spec any](function func(*pilothouse.Request[Spec]) (*pilothouse.Response, error)) {
	finalize = pilothouse.Answer(function)
}
