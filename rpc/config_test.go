package rpc

import "testing"

// A second configuration would be ignored, so it is an error of the program.
func TestOneConfiguration(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("two configurations, and no panic")
		}
	}()
	NewRawMethod("test.Twice", MethodConfig{}, MethodConfig{Idempotent: true})
}
