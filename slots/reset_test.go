package slots

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

// inReset runs test with a listener whose device was removed a second ago.
func inReset(t *testing.T, test func(w *actortest.World, far *rdma.Runtime, l *Listener)) {
	t.Helper()
	for name, infiniBand := range map[string]bool{"iWARP": false, "InfiniBand": true} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, actortest.Config{InfiniBand: infiniBand}, func(w *actortest.World) {
				far := w.Host("mem1", "10.0.0.2")
				l, err := Listen(w.T().Context(), far, "10.0.0.2:7471")
				if err != nil {
					t.Fatal(err)
				}
				w.RemoveDevice("mem1")
				time.Sleep(time.Second)
				test(w, far, l)
				_ = l.Close()
			})
		})
	}
}

// After a reset of the listener's device a peer can connect again.
func TestListensAgainAfterReset(t *testing.T) {
	inReset(t, func(w *actortest.World, _ *rdma.Runtime, l *Listener) {
		for range 3 {
			w.AddDevice("mem1")
			time.Sleep(10 * time.Second)
			client, err := Dial(w.T().Context(), w.Runtime(), l.Addr().String())
			if err != nil {
				w.T().Fatal(err)
			}
			server, err := l.Accept(w.T().Context())
			if err != nil {
				w.T().Fatal(err)
			}
			send(w.T(), client, "again")
			receives(w.T(), server, "again")
			_ = client.Close()
			_ = server.Close()
			w.RemoveDevice("mem1")
			time.Sleep(20 * time.Second)
		}
	})
}

// If the device does not return, Accept ends at the bound, with an error that names the device.
func TestAcceptEndsWithoutDevice(t *testing.T) {
	inReset(t, func(w *actortest.World, _ *rdma.Runtime, l *Listener) {
		begin := w.Elapsed()
		_, err := l.Accept(w.T().Context())
		if lost, ok := errors.AsType[*rdma.RemovedError](err); !ok || lost.Device != "mem1" || !errors.Is(err, unix.ENODEV) {
			t.Errorf("Accept returned %v, want the device that is gone", err)
		}
		if d := w.Elapsed() - begin + time.Second; d != relisten.GiveUp {
			t.Errorf("after %v, want %v", d, relisten.GiveUp)
		}
	})
}

// Close and the runtime's Shutdown end a listener that waits to listen again.
func TestListenerEndsWithoutDevice(t *testing.T) {
	for name, end := range map[string]struct {
		by   func(far *rdma.Runtime, l *Listener) error
		want error
	}{
		"Close":    {func(_ *rdma.Runtime, l *Listener) error { return l.Close() }, ErrClosed},
		"Shutdown": {func(far *rdma.Runtime, _ *Listener) error { return far.Shutdown(context.Background()) }, rdma.ErrShutdown},
	} {
		t.Run(name, func(t *testing.T) {
			inReset(t, func(w *actortest.World, far *rdma.Runtime, l *Listener) {
				over := make(chan error, 1)
				go func() {
					_, err := l.Accept(context.Background())
					over <- err
				}()
				w.Wait()
				begin := w.Elapsed()
				if err := end.by(far, l); err != nil {
					t.Error(err)
				}
				if err := <-over; !errors.Is(err, end.want) {
					t.Errorf("Accept returned %v, want %v", err, end.want)
				}
				if d := w.Elapsed() - begin; d > time.Second {
					t.Errorf("after %v", d)
				}
			})
		})
	}
}
