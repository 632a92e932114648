package rpc

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// slowly is an item that takes as long to be encoded as encode does.
type slowly struct{ encode func() }

func (s *slowly) AppendBinary(b []byte) ([]byte, error) {
	s.encode()
	return b, nil
}

func (s *slowly) UnmarshalBinary([]byte) error { return nil }

var slowItems = NewStream[Bytes, slowly]("test.SlowItems")

// A handler may give its Sender to other goroutines, which use it after the handler has returned.
// That does not end the connection.
func TestSenderOutlivesItsHandler(t *testing.T) {
	encoding, ended, sent := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	test := func(r *rig) {
		l := r.c.link()
		in, err := Open(r.t.Context(), r.c, slowItems, &Bytes{})
		if err != nil {
			r.t.Fatal(err)
		}
		if _, err := in.Receive(); !errors.Is(err, io.EOF) {
			r.t.Error(err)
		}
		close(ended)
		if err := <-sent; err == nil {
			r.t.Error("an item was sent behind the end of its stream")
		}
		r.Wait()
		if r.c.link() != l {
			r.t.Error("the connection has ended")
		}
	}
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		encoding, ended, sent = make(chan struct{}), make(chan struct{}), make(chan error, 1)
		r := &rig{World: w, t: w.T()}
		r.far = w.Host("mem1", there)
		r.s = NewServer(r.far)
		HandleStream(r.s, slowItems, func(_ context.Context, _ *Bytes, out *Sender[slowly]) error {
			go func() {
				sent <- out.Send(&slowly{func() {
					close(encoding)
					<-ended
				}})
			}()
			<-encoding
			return nil
		})
		at, err := r.s.Listen(w.T().Context(), there+":7471")
		if err != nil {
			w.T().Fatal(err)
		}
		r.addr = at.String()
		r.c = r.dial()
		test(r)
		r.c.Close()
		r.s.Close()
	})
}

// If a server drains and never answers calls that were given up, the client still closes the
// connection. It keeps it only for callers that wait for an answer.
func TestGivenUpCallsKeepNoDrainingConnection(t *testing.T) {
	release := make(chan struct{})
	inWorld(t, rigConfig{client: quick}, func(s *Server) {
		release = make(chan struct{})
		HandleRaw(s, stuck, func(context.Context, []byte, []byte) ([]byte, error) {
			<-release
			return nil, nil
		})
	}, func(r *rig) {
		defer close(release)
		ctx, cancel := context.WithCancel(r.t.Context())
		errs := make(chan error, 1)
		go func() {
			_, err := CallRaw(ctx, r.c, stuck, nil, nil)
			errs <- err
		}()
		r.Wait()
		l := r.c.link()
		for _, c := range r.s.connections() {
			c.out.mu.Lock()
			c.out.putLocked(wire.Header{Type: wire.FrameDrain}, nil)
			c.out.mu.Unlock()
			c.out.requestFlush()
		}
		r.Advance(time.Minute)
		select {
		case <-l.gone:
			r.t.Error("the connection of a call that is waited for is gone")
		default:
		}
		cancel()
		want(r.t, <-errs, context.Canceled, FateUnknown)
		r.Wait()
		select {
		case <-l.gone:
		case <-time.After(time.Minute):
			r.t.Error("the connection is still there")
		}
	})
}

// Shutdown also ends a connection that was accepted and is established seconds later. Its client
// does not close it here, so that takes as long as Close waits. This needs InfiniBand: on iWARP the
// accepting side is connected immediately.
func TestDrainDuringASetUp(t *testing.T) {
	inWorld(t, rigConfig{world: actortest.Config{InfiniBand: true}}, handleEcho, func(r *rig) {
		r.Drop(cmidtest.MsgREP, 1) // repeated after seconds
		p := r.Probe()
		p.Request(r.CreateID(p.PID(), rdma.IDConfig{}), &rdma.Dial{Addr: r.addr, PrivateData: wire.Hello{Version: 1, Window: 64}.Bytes()})
		for range 100 {
			if r.Advance(10 * time.Millisecond); len(r.s.connections()) == 2 {
				break
			}
		}
		if n := len(r.s.connections()); n != 2 {
			r.t.Fatalf("%d connections", n)
		}
		begin := r.Elapsed()
		if err := r.s.Shutdown(r.within(5 * time.Minute)); err != nil {
			r.t.Error(err)
		}
		if took := r.Elapsed() - begin; took > 10*time.Second {
			r.t.Errorf("it took %v", took)
		}
		actortest.Next[*rdma.Established](p)
		h, _, _, err := wire.ParseFrame(actortest.Next[*rdma.Received](p).Data)
		if err != nil || h.Type != wire.FrameDrain || h.Flags&wire.FlagLast == 0 {
			r.t.Errorf("a frame of type %d, flags %d, %v, want the last drain frame", h.Type, h.Flags, err)
		}
		actortest.Next[*rdma.Disconnected](p)
	})
}

// A connection that the server has no memory to accept is no longer counted.
func TestAcceptFails(t *testing.T) {
	for _, errno := range []unix.Errno{unix.ENOMEM, unix.EMFILE} {
		inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
			r.Delay(time.Second)
			p := r.Probe()
			p.Request(r.CreateID(p.PID(), rdma.IDConfig{}), &rdma.Dial{Addr: r.addr, PrivateData: wire.Hello{Version: 1, Window: 64}.Bytes()})
			r.Advance(2500 * time.Millisecond)
			r.RunOut(errno)
			r.Advance(2500 * time.Millisecond)
			r.RunOut(0)
			r.Advance(10 * time.Minute)
			actortest.Next[*rdma.Rejected](p)
			for _, c := range r.s.connections() {
				if c.limit == 0 {
					r.t.Error("a connection that has failed is counted")
				}
			}
		})
	}
}

// An error's details that are longer than any that are sent are left out here, too: they would be
// copied on the loop.
func TestErrorWithLongDetails(t *testing.T) {
	body := wire.AppendError(nil, "text", nil)
	text, details, err := wire.ParseError(append(body, make([]byte, wire.MaxErrorDetails+1)...))
	if text != "text" || details != nil || err != nil {
		t.Errorf("%q, %d bytes of details, %v", text, len(details), err)
	}
	if _, details, _ := wire.ParseError(append(body, make([]byte, wire.MaxErrorDetails)...)); len(details) != wire.MaxErrorDetails {
		t.Errorf("%d bytes of details are left", len(details))
	}
}
