// Package enum prints the values of types that are one of a few.
package enum

import "fmt"

// Integer is the constraint of such types.
type Integer interface {
	~uint8 | ~uint16 | ~uint32
}

// Name returns the name of v. format prints the number of a value without a name.
func Name[T Integer](names map[T]string, v T, format string) string {
	if name, ok := names[v]; ok {
		return name
	}
	return fmt.Sprintf(format, uint32(v))
}

// At is Name for a type whose values count from 0.
func At[T Integer](names []string, v T, format string) string {
	if int64(v) < int64(len(names)) {
		return names[v]
	}
	return fmt.Sprintf(format, uint32(v))
}
