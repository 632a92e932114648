package remoting

import (
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// piped reports whether the result of a future goes on to other actors, or that cannot be seen.
// Proto.Actor sends it to them on the goroutine that answers, and has no exported name for them:
// its fields are read by reflection, with the lock that it uses. A test notices a version that
// names them in another way.
func piped(future actor.Process) bool {
	v := reflect.ValueOf(future)
	at := layout.Load()
	if at == nil || at.of != v.Type() {
		at = layoutOf(v.Type())
		layout.Store(at)
	}
	if !at.known {
		return true
	}
	f := v.Elem().Field(0)
	mu, ok := (*sync.Cond)(f.Field(at.cond).UnsafePointer()).L.(*sync.Mutex)
	if !ok || !mu.TryLock() { // its result may be on its way
		return true
	}
	defer mu.Unlock()
	return f.Field(at.pipes).Len() > 0
}

// futureLayout says where a process has its future's fields.
type futureLayout struct {
	of          reflect.Type
	known       bool
	cond, pipes int
}

var layout atomic.Pointer[futureLayout] // of the type that was looked at last

func layoutOf(t reflect.Type) *futureLayout {
	l := &futureLayout{of: t}
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct || t.Elem().NumField() == 0 {
		return l
	}
	f := t.Elem().Field(0).Type
	if f.Kind() != reflect.Struct || f.PkgPath() != reflect.TypeFor[actor.PID]().PkgPath() {
		return l
	}
	cond, ok := f.FieldByName("cond")
	pipes, ok2 := f.FieldByName("pipes")
	if ok && ok2 && cond.Type == reflect.TypeFor[*sync.Cond]() && pipes.Type == reflect.TypeFor[[]*actor.PID]() {
		l.known, l.cond, l.pipes = true, cond.Index[0], pipes.Index[0]
	}
	return l
}
