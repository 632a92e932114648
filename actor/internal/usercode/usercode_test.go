package usercode

import (
	"errors"
	"runtime"
	"slices"
	"testing"
)

// All steps are taken, in order, whichever of them does not return, and a panic goes on after them.
func TestSteps(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("for the test") }, "Goexit": runtime.Goexit} {
		var taken []int
		var value any
		returned := false
		done := make(chan struct{})
		step := func(n int, then func()) func() {
			return func() {
				taken = append(taken, n)
				then()
			}
		}
		go func() {
			defer close(done)
			defer func() { value = recover() }()
			Steps(step(0, func() {}), step(1, leave), step(2, func() {}), step(3, leave), step(4, func() {}))
			returned = true
		}()
		<-done
		if !slices.Equal(taken, []int{0, 1, 2, 3, 4}) || returned || (value != nil) != (name == "panic") {
			t.Errorf("%s: steps %v, it has returned: %v, with %v", name, taken, returned, value)
		}
	}
}

// The caller learns the outcome of the code.
func TestCall(t *testing.T) {
	for name, code := range map[string]func(){"nothing": func() {}, "panic": func() { panic("for the test") }, "Goexit": runtime.Goexit} {
		var left any
		ok := false
		done := make(chan struct{})
		go func() {
			defer close(done)
			ok = Call(code, func(value any) { left = value })
		}()
		<-done
		err, _ := left.(error)
		switch {
		case name == "nothing" && (!ok || left != nil),
			name == "panic" && (ok || left != "for the test"),
			name == "Goexit" && (ok || !errors.Is(err, ErrGoexit)):
			t.Errorf("%s: %v, %v", name, ok, left)
		}
	}
}
