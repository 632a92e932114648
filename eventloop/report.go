package eventloop

import (
	"fmt"
	"reflect"
	"runtime"
)

// Holder names the callback that occupies the loop.
type Holder struct {
	Kind string // "handler", "timer", "post" or "runnable", "watchdog" for OnStall; empty: none
	Name string // the result of LoopName, or the type with the fd, or the function's name
}

// String returns kind and name.
func (h Holder) String() string {
	if h.Kind == "" {
		return "nobody"
	}
	return h.Kind + " " + h.Name
}

// Panic is a callback's panic, or its runtime.Goexit, as reported to Config.OnPanic.
type Panic struct {
	Loop   string
	Holder Holder // callback that panicked
	Who    any    // the Handler or Runnable itself; nil for a function
	Value  any    // the result of recover; for runtime.Goexit a *GoexitError
	Stack  []byte // of the panic
}

// named may be implemented by Handlers and Runnables, so that reports contain their name. LoopName
// is called on another goroutine while the callback runs. It must return immediately, and must not
// read anything that the callback changes.
type named interface{ LoopName() string }

// task is a Runnable of the loop's own, which stands for something of its user's.
type task interface{ identifyCallback() (Holder, any) }

// identifyRunnable names the callback behind r, and gives its Handler or Runnable: nil for a
// function.
func identifyRunnable(r Runnable) (h Holder, who any) {
	switch r := r.(type) {
	case nil:
		return Holder{}, nil
	case task:
		return r.identifyCallback()
	case named:
		return Holder{"runnable", nameOf(r)}, r
	default:
		return Holder{"runnable", fmt.Sprintf("%T", r)}, r
	}
}

// nameOf returns the result of LoopName, or the type's name if that panics.
func nameOf(n named) (name string) {
	defer func() {
		if recover() != nil {
			name = fmt.Sprintf("%T (LoopName panicked)", n)
		}
	}()
	return n.LoopName()
}

// functionName returns the name of function fn: "main.serve.func1".
func functionName(fn any) string {
	if f := runtime.FuncForPC(reflect.ValueOf(fn).Pointer()); f != nil {
		return f.Name()
	}
	return "unknown"
}
