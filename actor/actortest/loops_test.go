package actortest_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/eventloop"
)

// A World's machines may have several loops, over which connections are spread. Nothing is left on
// any of them.
func TestSeveralLoops(t *testing.T) {
	actortest.Run(t, actortest.Config{Runtime: rdma.Config{Loops: make([]eventloop.Config, 2)}}, func(w *actortest.World) {
		far := w.Host("mem1", "10.0.0.2")
		accept := actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*rdma.ConnectRequest); ok {
				ctx.Respond(&rdma.Accept{})
			}
		})
		server, client := w.Probe(), w.Probe()
		server.Request(far.CreateID(server.PID(), rdma.IDConfig{Handler: accept}), &rdma.Serve{Addr: "10.0.0.2:7471"})
		actortest.Next[*rdma.Listening](server)
		for range 4 {
			client.Request(w.CreateID(client.PID()), &rdma.Dial{Addr: "10.0.0.2:7471"})
			actortest.Next[*rdma.Established](client)
		}
		w.Wait()
		names := make(map[string]int)
		for _, i := range far.Inspect() {
			names[i.Loop]++
		}
		if names["mem1"]+names["mem1-1"] != 5 || names["mem1"] < 2 || names["mem1-1"] < 2 {
			t.Errorf("a listener and 4 connections live on %v, want them spread over mem1 and mem1-1", names)
		}
	})
}
