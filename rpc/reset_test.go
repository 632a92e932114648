package rpc

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/internal/relisten"
)

// inReset runs test with a server in Serve, whose device was removed a second ago.
func inReset(t *testing.T, test func(w *actortest.World, far *rdma.Runtime, s *Server, over <-chan error)) {
	t.Helper()
	for name, infiniBand := range map[string]bool{"iWARP": false, "InfiniBand": true} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, actortest.Config{InfiniBand: infiniBand}, func(w *actortest.World) {
				far := w.Host("mem1", there)
				s := NewServer(far)
				defer s.Close()
				handleEcho(s)
				over := make(chan error, 1)
				go func() { over <- s.Serve(w.T().Context(), there+":7471") }()
				time.Sleep(time.Second)
				w.RemoveDevice("mem1")
				time.Sleep(time.Second)
				test(w, far, s, over)
			})
		})
	}
}

// After a reset of its device a server can be called again, and Serve has not returned.
func TestServesAgainAfterReset(t *testing.T) {
	inReset(t, func(w *actortest.World, _ *rdma.Runtime, s *Server, over <-chan error) {
		for range 3 { // as often as the device is reset
			w.AddDevice("mem1")
			time.Sleep(10 * time.Second)
			c, err := Dial(w.T().Context(), w.Runtime(), there+":7471")
			if err != nil {
				w.T().Fatal(err)
			}
			ctx, cancel := context.WithTimeout(w.T().Context(), 10*time.Second)
			if got, err := CallRaw(ctx, c, echo, []byte("again"), nil); err != nil || string(got) != "again" {
				w.T().Errorf("after the reset: %q, %v", got, err)
			}
			cancel()
			c.Close()
			w.RemoveDevice("mem1")
			time.Sleep(20 * time.Second)
		}
		s.Close()
		want(w.T(), <-over, ErrClosed, FateNotSent)
	})
}

// If the device does not return, Serve ends with an error that names the lost device, not before
// the time limit.
func TestServeEndsWithoutDevice(t *testing.T) {
	inReset(t, func(w *actortest.World, _ *rdma.Runtime, _ *Server, over <-chan error) {
		begin := w.Elapsed()
		err := <-over
		if lost, ok := errors.AsType[*rdma.RemovedError](err); !ok || lost.Device != "mem1" || !errors.Is(err, unix.ENODEV) {
			w.T().Errorf("Serve returned %v, want the device that is gone", err)
		}
		if d := w.Elapsed() - begin + time.Second; d != relisten.GiveUp {
			w.T().Errorf("after %v, want %v", d, relisten.GiveUp)
		}
	})
}

// Close, Shutdown and the runtime's Shutdown end a server that is about to listen again.
func TestEndWithoutDevice(t *testing.T) {
	for name, end := range map[string]struct {
		by   func(far *rdma.Runtime, s *Server) error
		want error
	}{
		"Close":    {func(_ *rdma.Runtime, s *Server) error { s.Close(); return nil }, ErrClosed},
		"Shutdown": {func(_ *rdma.Runtime, s *Server) error { return s.Shutdown(context.Background()) }, ErrClosed},
		"runtime":  {func(far *rdma.Runtime, _ *Server) error { return far.Shutdown(context.Background()) }, rdma.ErrShutdown},
	} {
		t.Run(name, func(t *testing.T) {
			inReset(t, func(w *actortest.World, far *rdma.Runtime, s *Server, over <-chan error) {
				begin := w.Elapsed()
				if err := end.by(far, s); err != nil {
					w.T().Error(err)
				}
				if err := <-over; !errors.Is(err, end.want) {
					w.T().Errorf("Serve returned %v, want %v", err, end.want)
				}
				if d := w.Elapsed() - begin; d > time.Second {
					w.T().Errorf("after %v", d)
				}
			})
		})
	}
}
