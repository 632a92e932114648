package actor

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// A host's name is often a loopback address on the host itself (127.0.1.1 in Debian's hosts file).
// A listener by that name cannot be reached from elsewhere, and the log contains that and the way
// out. Loopback that was asked for is no surprise.
func TestListeningByANameOfLoopback(t *testing.T) {
	for _, c := range []struct {
		addr, resolved string
		warns          bool
	}{
		{"myhost:7471", "127.0.1.1:7471", true},
		{"myhost:7471", "[::1]:7471", true},
		{"myhost:7471", there + ":7471", false},
		{"localhost:7471", "127.0.0.1:7471", false},
		{"LocalHost.:7471", "127.0.0.1:7471", false},
		{"a.localhost:7471", "127.0.0.1:7471", false},
		{"ip6-localhost:7471", "[::1]:7471", false},
		{"127.0.1.1:7471", "127.0.1.1:7471", false},
		{":7471", "[::]:7471", false},
	} {
		t.Run(c.addr+" is "+c.resolved, func(t *testing.T) {
			var log bytes.Buffer
			onFlavors(t, func(w *world) {
				log.Reset()
				w.far.resolve = addresses(c.resolved)
				p := w.farProbe()
				p.send(w.far.CreateID(p.pid, IDConfig{}), &Serve{Addr: c.addr})
				next[*Listening](p)
				settle()
				got := log.String()
				warned := strings.Contains(got, "only this machine") && strings.Contains(got, c.resolved) && strings.Contains(got, `addr=`+c.addr)
				if warned != c.warns || !warned && got != "" {
					w.Errorf("the log has %q", got)
				}
			}, Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		})
	}
}
