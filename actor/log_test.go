package actor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

// TestLogOfTransitions reads the debug log of a connection's life to find out its history: each
// line names the command or the event that has caused it, and the addresses stay known to the end.
func TestLogOfTransitions(t *testing.T) {
	var log bytes.Buffer
	opts := &slog.HandlerOptions{Level: slog.LevelDebug}
	logger := slog.New(slog.NewJSONHandler(&log, opts))
	onFlavors(t, func(w *world) {
		log.Reset()
		p := w.connect()
		p.server.send(p.s, &Close{})
		until[*Closed](p.server)
		until[*Closed](p.client)
		settle()

		moves := make(map[string][]string) // by side
		for line := range strings.Lines(log.String()) {
			var k struct{ Msg, From, Op, Local, Peer string }
			if err := json.Unmarshal([]byte(line), &k); err != nil {
				w.Fatal(err)
			}
			state, isMove := strings.CutPrefix(k.Msg, "rdma: ")
			if !isMove || k.From == "" {
				continue
			}
			who := "client"
			if strings.HasPrefix(k.Local, there) {
				who = "server"
			}
			moves[who] = append(moves[who], fmt.Sprintf("%s(%s)", state, k.Op))
			if state == "destroying" && (k.Local == "" || k.Peer == "") {
				w.Errorf("no addresses: %s", line)
			}
		}
		for who, want := range map[string][]string{
			"client": {"route-resolved(RouteResolved)", "connecting(Connect)", "connected(Established)", "destroying(DestroyID)"},
			"server": {"bound(BindAddr)", "listening(Listen)", "accepting(Accept)", "connected(Established)", "destroying(DestroyID)"},
		} {
			for _, move := range want {
				if !slices.Contains(moves[who], move) {
					w.Errorf("the %s's log lacks %s: %v", who, move, moves[who])
				}
			}
		}
		for who, all := range moves {
			if slices.ContainsFunc(all, func(m string) bool { return strings.HasSuffix(m, "(Query)") }) {
				w.Errorf("nobody has asked the %s to query: %v", who, all)
			}
		}
	}, Config{Logger: logger})
}

// TestDataEventStrings has the lines of this package's own events. cmid has the others.
func TestDataEventStrings(t *testing.T) {
	id := EventBase{ID: 2}
	for want, ev := range map[string]Event{
		"received 5 bytes (id 2)": &Received{EventBase: id, Data: []byte("hello")},
		"sent 5 bytes (id 2)":     &Sent{EventBase: id, Bytes: 5},
		"writable (id 2)":         &Writable{id},
	} {
		if got := fmt.Sprint(ev); got != want {
			t.Errorf("%T is %q, want %q", ev, got, want)
		}
	}
}
