package remoting_test

import (
	"fmt"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// A peer that spawns an actor and sends to its name immediately does not keep it from running.
func TestMessagesInTheMiddleOfASpawn(t *testing.T) {
	began := make(chan string, 1000)
	n := start(t, remoting.Config{Expose: everything, Kinds: map[string]*actor.Props{
		"kind": actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Started); ok {
				began <- ctx.Self().Id
			}
		}),
	}})
	s := meet(t, n, "spawns:1").introduce()
	const many = 300
	for i := range many {
		name := fmt.Sprint("name", i)
		list := []frame.Record{{Kind: frame.KindSpawn, Type: "kind", Target: name, Seq: uint64(i)}}
		for range 200 {
			list = append(list, frame.Record{Kind: frame.KindUser, Target: "Remote$" + name, Type: emptyType})
		}
		s.say(list...)
		if r := s.hears(frame.KindSpawned); r.Code != frame.SpawnedOK {
			t.Fatalf("%d: %+v", i, r)
		}
	}
	eventually(t, "an actor does not run", func() bool { return len(began) == many })
}
