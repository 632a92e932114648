package native

import "fmt"

// LibraryError reports that libibverbs cannot be used, and a remedy. errors.Is finds an errno.
type LibraryError struct {
	Library string // the file, with its version if known
	Symbol  string // the missing function, if it is one
	Remedy  string
	Err     error
}

// Error returns the error in one line.
func (e *LibraryError) Error() string {
	what := e.Library
	if e.Symbol != "" {
		what += ": " + e.Symbol
	}
	return fmt.Sprintf("%s: %v: %s", what, e.Err, e.Remedy)
}

// Unwrap returns the cause.
func (e *LibraryError) Unwrap() error { return e.Err }

// CallError is a failed call of the library. errors.Is finds the errno.
type CallError struct {
	Library string // the file, with its version
	Symbol  string // the function
	Err     error  // the errno
}

// Error names the function, the library and the errno.
func (e *CallError) Error() string {
	return fmt.Sprintf("%s of %s: %v", e.Symbol, e.Library, e.Err)
}

// Unwrap returns the errno.
func (e *CallError) Unwrap() error { return e.Err }
