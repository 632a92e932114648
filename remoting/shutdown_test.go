package remoting_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/remoting"
)

// The error of Shutdown names the peers that have taken nothing, and of many the first eight.
func TestShutdownNamesPeers(t *testing.T) {
	for peers, want := range map[int]string{1: "10.0.0.11:7471", 3: "10.0.0.11:7471, 10.0.0.12:7471, 10.0.0.13:7471", 11: "10.0.0.17:7471, 10.0.0.18:7471 and 3 more"} {
		t.Run(fmt.Sprint(peers), func(t *testing.T) {
			actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
				n, err := remoting.Start(w.Runtime(), remoting.Config{Name: "10.0.0.1:7471"})
				if err != nil {
					w.T().Fatal(err)
				}
				for i := range peers {
					host, p := fmt.Sprint("10.0.0.", 11+i), w.Probe()
					p.Request(w.Host(fmt.Sprint("mem", 1+i), host).CreateID(p.PID(), rdma.IDConfig{AcceptTimeout: time.Hour}), &rdma.Serve{Addr: ":7471"})
					actortest.Next[*rdma.Listening](p)
					w.System().Root.Send(actor.NewPID(host+":7471", "x"), text("hello"))
					actortest.Next[*rdma.ConnectRequest](p) // left unanswered
				}
				ctx, cancel := context.WithTimeout(w.T().Context(), time.Second)
				defer cancel()
				cause := error(unix.ETIMEDOUT)
				if peers == 3 {
					cause = context.Canceled
					ctx, cancel = context.WithCancel(w.T().Context())
					time.AfterFunc(time.Second, cancel)
				}
				err = n.Shutdown(ctx)
				if err == nil || !errors.Is(err, cause) || !strings.Contains(err.Error(), want+": ") {
					w.T().Errorf("the error is %v, want %q in it", err, want)
				}
			})
		})
	}
}
