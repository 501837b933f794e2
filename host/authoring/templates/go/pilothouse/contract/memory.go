//go:build wasip1

package contract

import "unsafe"

// What the host has put into memory for the call at work, until it is read, and what the host has yet to read. Without these, the garbage
// collector would take them.
var given, returned []any

// The host asks for memory for what it passes.
//
//go:wasmexport cabi_realloc
func realloc(_, _, _, size uint32) uint32 {
	place := allocate(size)
	given = append(given, place)
	return address(place)
}

// Memory for so many bytes, for values of any type.
func allocate(size uint32) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(make([]uint64, max(1, (size+7)/8))))
}

func address(place unsafe.Pointer) uint32 { return uint32(uintptr(place)) }

// values are records of one size behind each other, as the contract lays them out.
type values struct {
	at unsafe.Pointer
}

func at(place uint32) values { return values{unsafe.Pointer(uintptr(place))} }

func (v values) plus(bytes uint32) values { return values{unsafe.Add(v.at, bytes)} }

func (v values) byte(offset uint32) *uint8     { return (*uint8)(unsafe.Add(v.at, offset)) }
func (v values) word(offset uint32) *uint32    { return (*uint32)(unsafe.Add(v.at, offset)) }
func (v values) float(offset uint32) *float64  { return (*float64)(unsafe.Add(v.at, offset)) }
func (v values) text(offset uint32) string     { return text(*v.word(offset), *v.word(offset + 4)) }
func (v values) setFlag(offset uint32, b bool) { *v.byte(offset) = *(*uint8)(unsafe.Pointer(&b)) }

// setText puts a text at a place in values that are returned.
func (v values) setText(offset uint32, text string) {
	data := unsafe.StringData(text)
	returned = append(returned, data)
	*v.word(offset), *v.word(offset + 4) = address(unsafe.Pointer(data)), uint32(len(text))
}

func text(from, length uint32) string {
	return unsafe.String((*byte)(unsafe.Pointer(uintptr(from))), length)
}

// lift reads a list of records of that size.
func lift[T any](from, length, size uint32, one func(values) T) []T {
	list := make([]T, length)
	for i := range list {
		list[i] = one(at(from).plus(uint32(i) * size))
	}
	return list
}

// lower puts a list of records of that size at a place in values that are returned.
func lower[T any](v values, offset uint32, list []T, size uint32, one func(values, T)) {
	place := allocate(uint32(len(list)) * size)
	returned = append(returned, place)
	for i, item := range list {
		one(values{place}.plus(uint32(i)*size), item)
	}
	*v.word(offset), *v.word(offset + 4) = address(place), uint32(len(list))
}
