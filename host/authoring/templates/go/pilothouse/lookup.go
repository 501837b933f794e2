package pilothouse

import (
	"encoding/json"
	"fmt"
	"time"

	"{{group}}/{{name}}/pilothouse/contract"
)

// Get reads an object that the plugin does not own, and says whether there is one. An empty namespace is that of the object being
// reconciled. The host remembers each lookup, and asks the plugin again when its result changes. The manifest names the kind.
func Get(apiVersion, kind, namespace, name string, into any, fields ...string) (bool, error) {
	object, err := contract.Get(contract.Kind{APIVersion: apiVersion, Name: kind}, scope(namespace), name, fields)
	if err != nil || object == nil {
		return false, err
	}
	if err := json.Unmarshal([]byte(*object), into); err != nil {
		return false, fmt.Errorf("cannot read the %s that was looked up: %w", kind, err)
	}
	return true, nil
}

// Select gives the objects that a label selector matches, as JSON texts in the order of their names. The namespace is as for Get.
func Select(apiVersion, kind, namespace, labelSelector string, fields ...string) ([]string, error) {
	return contract.Select(contract.Kind{APIVersion: apiVersion, Name: kind}, scope(namespace), labelSelector, fields)
}

// SelectInAllNamespaces is as Select. The manifest says allNamespaces for the kind.
func SelectInAllNamespaces(apiVersion, kind, labelSelector string, fields ...string) ([]string, error) {
	everywhere := contract.Scope{Where: contract.AllNamespaces}
	return contract.Select(contract.Kind{APIVersion: apiVersion, Name: kind}, everywhere, labelSelector, fields)
}

func scope(namespace string) contract.Scope {
	if namespace == "" {
		return contract.Scope{}
	}
	return contract.Scope{Where: contract.InNamespace, Namespace: namespace}
}

// Now is the time at which the call began. A plugin that does not read it is asked only when something changes.
func Now() (time.Time, error) { return time.Parse(time.RFC3339, contract.Now()) }

// Log writes a line to the log of the host.
func Log(level contract.Level, message string, arguments ...any) {
	contract.Log(level, fmt.Sprintf(message, arguments...))
}
