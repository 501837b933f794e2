//go:build wasip1

package contract

import "unsafe"

//go:wasmimport pilothouse:plugin/lookup@{{contract}} get
func get(apiVersion unsafe.Pointer, apiVersionLength uint32, kind unsafe.Pointer, kindLength, where uint32,
	namespace unsafe.Pointer, namespaceLength uint32, name unsafe.Pointer, nameLength uint32,
	fields unsafe.Pointer, fieldsLength uint32, result unsafe.Pointer)

//go:wasmimport pilothouse:plugin/lookup@{{contract}} select
func selectObjects(apiVersion unsafe.Pointer, apiVersionLength uint32, kind unsafe.Pointer, kindLength, where uint32,
	namespace unsafe.Pointer, namespaceLength uint32, selector unsafe.Pointer, selectorLength uint32,
	fields unsafe.Pointer, fieldsLength uint32, result unsafe.Pointer)

//go:wasmimport pilothouse:plugin/clock@{{contract}} now
func now(result unsafe.Pointer)

//go:wasmimport pilothouse:plugin/log@{{contract}} write
func write(level uint32, message unsafe.Pointer, length uint32)

// Get asks the host for an object; nil if there is none.
func Get(kind Kind, scope Scope, name string, fields []string) (*string, error) {
	result, list := values{allocate(16)}, pointers(fields)
	get(data(kind.APIVersion), length(kind.APIVersion), data(kind.Name), length(kind.Name), uint32(scope.Where),
		data(scope.Namespace), length(scope.Namespace), data(name), length(name), list.at, uint32(len(fields)), result.at)
	defer forget()
	if *result.byte(0) == 1 {
		return nil, lookupError(result)
	}
	if *result.byte(4) == 0 {
		return nil, nil
	}
	object := result.text(8)
	return &object, nil
}

// Select asks the host for the objects that a label selector matches.
func Select(kind Kind, scope Scope, selector string, fields []string) ([]string, error) {
	result, list := values{allocate(16)}, pointers(fields)
	selectObjects(data(kind.APIVersion), length(kind.APIVersion), data(kind.Name), length(kind.Name), uint32(scope.Where),
		data(scope.Namespace), length(scope.Namespace), data(selector), length(selector), list.at, uint32(len(fields)), result.at)
	defer forget()
	if *result.byte(0) == 1 {
		return nil, lookupError(result)
	}
	return lift(*result.word(4), *result.word(8), 8, func(v values) string { return v.text(0) }), nil
}

// Now asks the host for the time at which the call began, as RFC 3339 in UTC.
func Now() string {
	result := values{allocate(8)}
	now(result.at)
	defer forget()
	return result.text(0)
}

// Log writes a line to the log of the host.
func Log(level Level, message string) { write(uint32(level), data(message), length(message)) }

func lookupError(result values) error {
	return &LookupError{Refusal(*result.byte(4)), result.text(8)}
}

// What the host has passed is in the values that were read.
func forget() { given = nil }

// The texts as the contract has lists of them. They live as long as the call, which is when what is returned is given up.
func pointers(texts []string) values {
	list := values{allocate(8)}
	lower(list, 0, texts, 8, setString)
	return at(*list.word(0))
}

func data(text string) unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(text)) }
func length(text string) uint32       { return uint32(len(text)) }
