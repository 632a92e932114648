// Package usercode calls user code that may panic, for callers that have to continue. A
// runtime.Goexit is not held up: on a loop it ends the loop (eventloop.GoexitError).
package usercode

// Call calls code. If that panics, failed is called with the value of the panic, while code's stack
// is still there, and Call returns false.
func Call(code func(), failed func(value any)) (ok bool) {
	defer func() {
		if value := recover(); value != nil {
			failed(value)
		}
	}()
	code()
	return true
}
