// Package optional is for functions whose last argument, a configuration, may be left out.
package optional

// Value returns the only one of values, or the zero value if there are none. It panics if there are
// several.
func Value[T any](values []T) (only T) {
	switch len(values) {
	case 0:
		return only
	case 1:
		return values[0]
	}
	panic("rdmactor: more than one configuration")
}
