package actor

import "github.com/asynkron/protoactor-go/actor"

// System is the ActorSystem that the runtime was opened in. Any goroutine.
func (rt *Runtime) System() *actor.ActorSystem { return rt.sys }
