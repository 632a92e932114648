package remoting

import (
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting/internal/inbox"
)

// isPiped reports whether the result of a future goes on to other actors, or that cannot be seen.
// Proto.Actor sends it to them on the goroutine that answers, and has no exported name for them:
// its fields are found by their types and read by reflection, with the lock that it uses.
func isPiped(future actor.Process) bool {
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

// futureLayout locates the fields of futures in their process.
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
	conds, pipes := 0, 0
	for i := range f.NumField() {
		switch f.Field(i).Type {
		case reflect.TypeFor[*sync.Cond]():
			l.cond = i
			conds++
		case reflect.TypeFor[[]*actor.PID]():
			l.pipes = i
			pipes++
		}
	}
	l.known = conds == 1 && pipes == 1
	return l
}

// missingPart returns the first part that this version of Proto.Actor lacks for reflection; "":
// none.
func missingPart(sys *actor.ActorSystem) string {
	if what := inbox.Missing(); what != "" {
		return what
	}
	f := actor.NewFuture(sys, -1)
	p, _ := sys.ProcessRegistry.GetLocal(f.PID().Id)
	defer p.Stop(f.PID())
	if t := reflect.TypeOf(p); !layoutOf(t).known {
		return t.String() + " does not have one lock and one list of PIDs"
	}
	return ""
}
