//go:build wasip1

package pilothouse

import "{{group}}/{{name}}/pilothouse/contract"

//go:wasmexport pilothouse:plugin/reconciler@{{contract}}#reconcile
func reconcileExport(object, objectLength, children, childrenLength, refused, refusedLength, config, configLength uint32) uint32 {
	return contract.Call(object, objectLength, children, childrenLength, refused, refusedLength, config, configLength, reconcile)
}
