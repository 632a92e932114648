package rpc

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// order records events in order.
type order struct {
	mu   sync.Mutex
	what []string
}

// note notes something. To note "first" takes a second.
func (o *order) note(what string) {
	o.mu.Lock()
	o.what = append(o.what, what)
	o.mu.Unlock()
	if what == "first" {
		time.Sleep(time.Second)
	}
}

func (o *order) want(t *testing.T, want ...string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Equal(o.what, want) {
		t.Errorf("the order is %q, want %q", o.what, want)
	}
}

// manyFrames returns a message of 2 MiB. Between the given two frames it has frames that take time
// to read and have no effect.
func manyFrames(first, nothing, last []byte) []byte {
	return slices.Concat(first, bytes.Repeat(nothing, 2<<20/len(nothing)), last)
}

// A message of very many frames is not read in one turn of the server's loop. So calls of other
// clients that arrive then do not wait for all of it.
func TestServerReadsInTurns(t *testing.T) {
	var o order
	inWorld(t, rigConfig{server: ServerConfig{MaxMessage: 4 << 20, Credits: 4}}, func(s *Server) {
		HandleRaw(s, echo, func(_ context.Context, q, reply []byte) ([]byte, error) {
			o.note(string(q))
			return reply, nil
		}, HandlerConfig{OnLoop: true})
	}, func(r *rig) {
		p := r.rawClient()
		p.say(declareEcho)
		r.Wait()
		p.say(manyFrames(frame(wire.Header{Type: wire.FrameCall}, "first"), frame(wire.Header{Type: wire.FrameCancel, Call: 99}, ""),
			frame(wire.Header{Type: wire.FrameCall, Call: 1}, "last")))
		p.say(frame(wire.Header{Type: wire.FrameCall, Call: 2}, "behind"))
		r.Wait()
		done := make(chan error)
		go func() {
			_, err := CallRaw(r.t.Context(), r.c, echo, []byte("other"), nil)
			done <- err
		}()
		if err := <-done; err != nil {
			r.t.Error(err)
		}
		r.Advance(time.Second)
		o.want(r.t, "first", "other", "last", "behind")
	})
}

var (
	notes = NewMethod[Bytes, noting]("test.Notes")
	noted atomic.Pointer[order]
)

// noting is an answer that reports when it is decoded.
type noting struct{}

func (*noting) AppendBinary(b []byte) ([]byte, error) { return b, nil }

func (n *noting) UnmarshalBinary(b []byte) error {
	noted.Load().note(string(b))
	return nil
}

// A client reads in turns, too. It handles the end of the connection after all earlier input.
func TestClientReadsInTurns(t *testing.T) {
	for _, ends := range []bool{false, true} {
		actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
			o := &order{}
			noted.Store(o)
			far := w.Host("mem1", there)
			var conns []*actor.PID
			calls := map[string][]wire.CallID{}
			server := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				switch m := ctx.Message().(type) {
				case *actor.Started:
					ctx.Send(far.CreateID(ctx.Self(), rdma.IDConfig{}), &rdma.Serve{Addr: there + ":7471"})
				case *rdma.ConnectRequest:
					ctx.Respond(&rdma.Accept{PrivateData: wire.Hello{Version: 1, Calls: 100}.Bytes()})
				case *rdma.Established:
					conns = append(conns, ctx.Sender())
				case *rdma.Received:
					for b := m.Data; len(b) > 0; {
						h, _, rest, err := wire.ParseFrame(b)
						if err != nil {
							panic(err)
						}
						if b = rest; h.Type == wire.FrameCall {
							id := ctx.Sender().Id
							calls[id] = append(calls[id], h.Call)
						}
					}
				case string:
					from := conns[0]
					if m == "other" {
						from = conns[1]
					}
					ids := calls[from.Id]
					if m == "other" {
						ctx.Send(from, rdma.NewSend(frame(wire.Header{Type: wire.FrameReply, Call: ids[0]}, m)))
						return
					}
					ctx.Send(from, rdma.NewSend(manyFrames(frame(wire.Header{Type: wire.FrameReply, Call: ids[1]}, "first"),
						frame(wire.Header{Type: wire.FrameItem, Call: ids[0]}, ""), frame(wire.Header{Type: wire.FrameReply, Call: ids[2]}, "last"))))
					if ctx.Send(from, rdma.NewSend(frame(wire.Header{Type: wire.FrameReply, Call: ids[3]}, "behind"))); ends {
						ctx.Send(from, &rdma.Close{})
					}
				}
			}, far.OnLoop()))
			w.Wait()
			var clients []*Client
			for range 2 {
				c, err := Dial(w.T().Context(), w.Runtime(), there+":7471", ClientConfig{MaxMessage: 4 << 20, Credits: 4})
				if err != nil {
					w.T().Fatal(err)
				}
				clients = append(clients, c)
				w.Wait()
			}
			in, err := Open(w.T().Context(), clients[0], blobs, nil)
			if err != nil {
				w.T().Fatal(err)
			}
			w.Wait()
			in.Close() // later items are dropped
			var errs []error
			pid := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				switch m := ctx.Message().(type) {
				case *Client:
					Go(ctx, m, notes, &Bytes{})
				case *Reply[noting]:
					if m.Err != nil {
						errs = append(errs, m.Err)
					}
				}
			}, w.Runtime().OnLoop()))
			for _, i := range []int{0, 0, 0, 1} {
				w.System().Root.Send(pid, clients[i])
				w.Wait()
			}
			w.System().Root.Send(server, "many")
			w.Wait()
			w.System().Root.Send(server, "other")
			w.Advance(2 * time.Second)
			o.want(w.T(), "first", "other", "last", "behind")
			if len(errs) > 0 {
				w.T().Error(errs)
			}
			for _, c := range clients {
				c.Close()
			}
			w.System().Root.Stop(pid)
			w.System().Root.Stop(server)
		})
	}
}
