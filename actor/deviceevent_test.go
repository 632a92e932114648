package actor

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/verbs"
)

// An event of a device's own is logged, and ends no connection.
func TestDeviceEvents(t *testing.T) {
	log := make(lines, 1<<12)
	onKernelLike(t, kernelLike{}, func(w *world, near, _ *kernelLike) {
		p := w.connect()
		for len(log) > 0 {
			<-log
		}
		for ev, level := range map[verbs.DeviceEvent]string{verbs.PortError: "WARN", verbs.PortActive: "INFO"} {
			w.onLoop(w.rt, func(*loop) {
				for _, d := range near.in.devs {
					d.report(ev, 1)
				}
			})
			line := <-log
			for _, says := range []string{"level=" + level, `op="` + ev.String() + `"`, "port=1", "device="} {
				if !strings.Contains(line, says) {
					w.Errorf("the log says %s, want %s", line, says)
				}
			}
		}
		p.client.send(p.c, NewSend([]byte("still there")))
		if g := p.server.any(); g.data != "still there" {
			w.Errorf("got %v", g)
		}
	}, Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
}

// An event that comes again and again does not hide another.
func TestDeviceEventsHideNothing(t *testing.T) {
	log := make(lines, 1<<12)
	onKernelLike(t, kernelLike{}, func(w *world, near, _ *kernelLike) {
		w.connect()
		w.onLoop(w.rt, func(*loop) {
			for _, d := range near.in.devs {
				for range 100 {
					d.report(verbs.GIDChange, 1)
				}
				d.report(verbs.PortError, 1)
			}
		})
		settle()
		seen := false
		for len(log) > 0 {
			seen = strings.Contains(<-log, `op="port error"`) || seen
		}
		if !seen {
			w.Error("changes of addresses hide that a port has failed")
		}
	}, Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
}
