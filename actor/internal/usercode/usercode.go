// Package usercode calls user code that may fail to return, by a panic or by runtime.Goexit, for
// callers that have to continue or have something to finish.
package usercode

import "errors"

// ErrGoexit is in place of a panic's value when code has called runtime.Goexit, as testing's
// FailNow does.
var ErrGoexit = errors.New("runtime.Goexit was called")

// Call calls code. If that panics or calls runtime.Goexit, left is called with the value of the
// panic, or ErrGoexit. After a panic Call then returns false. After a Goexit it does not return,
// and only deferred functions still run. So whatever has to happen in any case is done before, or
// deferred by the caller.
func Call(code func(), left func(value any)) (ok bool) {
	defer func() {
		if ok {
			return
		}
		value := recover()
		if value == nil {
			value = ErrGoexit
		}
		left(value)
	}()
	code()
	return true
}

// Each calls f for each element. A call that does not return does not keep the others from being
// made.
func Each[T any](list []T, f func(T)) {
	for i, v := range list {
		returned := false
		func() {
			defer func() {
				if !returned {
					Each(list[i+1:], f)
				}
			}()
			f(v)
			returned = true
		}()
	}
}

// Steps calls functions in order. One that does not return does not keep the others from being
// called.
func Steps(steps ...func()) { Each(steps, func(step func()) { step() }) }
