package actor

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Close reports the wait that has timed out: for the peer to consume messages, for it to accept raw
// sends, or for its answer to the disconnect, when everything else is done.
func TestCloseSaysWhatItWaitedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		opts  IDConfig
		sends int
		want  string
	}{
		"raw, nothing sent":      {IDConfig{Raw: true}, 0, "has not answered the disconnect"},
		"raw, under way":         {IDConfig{Raw: true}, 1, "has not taken"},
		"messages, nothing sent": {IDConfig{}, 0, "has not answered the disconnect"},
		"messages, under way":    {IDConfig{}, 1, "has not consumed"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 0, func(w *world) { // on iWARP it is the device that reports the end
				p := w.connect(tt.opts)
				w.f.Cut(w.f.Host(""), w.f.Host("far"))
				defer w.f.Heal(w.f.Host(""), w.f.Host("far"))
				for range tt.sends {
					p.client.send(p.c, NewSend([]byte("x")))
				}
				took := elapsed(func() {
					p.client.send(p.c, &Close{})
					end := until[*Closed](p.client)
					err := end[len(end)-1].msg.(*Closed).Err
					is(w, err, unix.ETIMEDOUT)
					if err == nil || !strings.Contains(err.Error(), tt.want) {
						w.Errorf("closed because of %v, want that the peer %s", err, tt.want)
					}
				})
				if took > 5*time.Second+goodbyeTime {
					w.Errorf("Close took %v", took)
				}
			})
		})
	}
}
