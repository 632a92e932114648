package rdmanet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/internal/relisten"
)

// http.Serve goes on when its device is reset, as over TCP, and clients can connect again.
func TestHTTPServesAgainAfterReset(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		s := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "served") })}
		over := make(chan error, 1)
		go func() { over <- s.Serve(l) }()
		get := func() (string, error) {
			c := &http.Client{Transport: &http.Transport{DialContext: NewDialer(rt).DialContext, DisableKeepAlives: true}}
			r, err := c.Get("http://" + l.Addr().String())
			if err != nil {
				return "", err
			}
			defer r.Body.Close()
			b, err := io.ReadAll(r.Body)
			return string(b), err
		}
		for n := range 3 {
			if got, err := get(); err != nil || got != "served" {
				w.T().Errorf("after %d resets: %q, %v", n, got, err)
			}
			w.RemoveDevice("mem0")
			time.Sleep(10 * time.Second)
			w.AddDevice("mem0")
			time.Sleep(10 * time.Second)
		}
		_ = s.Close()
		if err := <-over; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve returned %v, want ErrServerClosed", err)
		}
	})
}

// If the device does not return, Accept ends at the bound, with an error that names the device.
func TestAcceptEndsWithoutDevice(t *testing.T) {
	inWorlds(t, func(w *actortest.World, _ *rdma.Runtime, l *Listener) {
		begin := w.Elapsed()
		w.RemoveDevice("mem0")
		for range 2 { // and every further call
			_, err := l.Accept()
			is(t, err, unix.ENODEV)
			if lost, ok := errors.AsType[*rdma.RemovedError](err); !ok || lost.Device != "mem0" {
				t.Errorf("Accept returned %v, want the device that is gone", err)
			}
			at(w, "Accept", begin, relisten.GiveUp)
		}
	})
}

// Close and the runtime's Shutdown end a listener that waits to listen again.
func TestListenerEndsWithoutDevice(t *testing.T) {
	for name, end := range map[string]struct {
		by   func(rt *rdma.Runtime, l *Listener) error
		want error
	}{
		"Close":    {func(_ *rdma.Runtime, l *Listener) error { return l.Close() }, net.ErrClosed},
		"Shutdown": {func(rt *rdma.Runtime, _ *Listener) error { return rt.Shutdown(context.Background()) }, rdma.ErrShutdown},
	} {
		t.Run(name, func(t *testing.T) {
			inWorlds(t, func(w *actortest.World, _ *rdma.Runtime, l *Listener) {
				over := make(chan error, 1)
				go func() {
					_, err := l.Accept()
					over <- err
				}()
				w.RemoveDevice("mem0")
				time.Sleep(10 * time.Second)
				begin := w.Elapsed()
				if err := end.by(w.Runtime(), l); err != nil {
					t.Error(err)
				}
				is(t, <-over, end.want)
				if d := w.Elapsed() - begin; d > time.Second {
					t.Errorf("after %v", d)
				}
			})
		})
	}
}
