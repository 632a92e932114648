package usercode

import "testing"

// The caller learns the outcome of the code.
func TestCall(t *testing.T) {
	for want, code := range map[any]func(){nil: func() {}, "for the test": func() { panic("for the test") }} {
		var failed any
		if ok := Call(code, func(value any) { failed = value }); ok != (want == nil) || failed != want {
			t.Errorf("%v, %v, want %v", ok, failed, want)
		}
	}
}
