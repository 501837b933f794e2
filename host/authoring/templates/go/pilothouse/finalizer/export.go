//go:build wasip1

package finalizer

import "{{group}}/{{name}}/pilothouse/contract"

//go:wasmexport pilothouse:plugin/finalizer@{{contract}}#finalize
func finalizeExport(object, objectLength, children, childrenLength, refused, refusedLength, config, configLength uint32) uint32 {
	return contract.Call(object, objectLength, children, childrenLength, refused, refusedLength, config, configLength, finalize)
}
