package actor

// Panicked is published on the ActorSystem's EventStream when code of the user's that is no actor
// has panicked, or has called runtime.Goexit, and what has called it has gone on without it: a
// Send's Renew, a handler of package rpc. It is published where that happened, by the goroutine
// that did it. What actors do Proto.Actor publishes (actor.SupervisorEvent), and what an event loop
// calls is its configuration's (eventloop.Config.OnPanic).
type Panicked struct {
	Kind, Name string // such as "rpc handler" and the method
	Value      any    // what recover has returned; for runtime.Goexit an error that says so
	Stack      []byte
}
