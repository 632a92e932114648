package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// here opens a host in this process, for a test without faults.
func here(t *testing.T, r role) *host {
	t.Helper()
	r.Number, r.Scale = 1, slow.byDefault()
	h, err := openHost(r)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestWork checks that every kind of work is done if there are no faults, that none of it fails,
// and that nothing is left. The rest of the soak relies on that.
func TestWork(t *testing.T) {
	of := here(t, role{Side: server, Server: addresses{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"}})
	s, err := startServant(of)
	if err != nil {
		t.Fatal(err)
	}
	h := here(t, role{Side: client, Server: of.server})
	end, err := startCustomer(h)
	if err != nil {
		t.Fatal(err)
	}
	missing := slices.Clone(kindsOfWork)
	const several = 5
	for deadline := time.Now().Add(time.Minute); len(missing) > 0 && time.Now().Before(deadline); time.Sleep(beat) {
		done := h.takeSample().Done
		missing = slices.DeleteFunc(missing, func(work string) bool { return done[work] >= several })
	}
	if len(missing) > 0 {
		t.Errorf("a client never did this %d times: %q", several, missing)
	}
	if has := currentFootprint(of.rt); has.IDs < 3 || has.RSS == 0 || has.FDs == 0 || has.Heap == 0 || has.Goroutines == 0 {
		t.Errorf("a server with listeners and connections has %+v", has)
	}
	for _, h := range []*host{of, h} {
		got := h.takeSample()
		// a busy machine may cause deadlines to pass
		maps.DeleteFunc(got.Errors, func(name string, _ uint64) bool { return strings.Contains(name, "deadline") })
		if len(got.Wrong) > 0 || len(got.Errors) > 0 {
			t.Errorf("without faults this went wrong: %q, and this failed: %v", got.Wrong, got.Errors)
		}
	}
	end()
	h.close()
	s.close()
	of.close()
	for _, h := range []*host{of, h} {
		if got := h.takeSample(); len(got.Wrong) > 0 {
			t.Errorf("at the end this went wrong: %q", got.Wrong)
		}
	}
}

// TestServerFinds shows what a server reports as wrong.
func TestServerFinds(t *testing.T) {
	changed := payload(1, 100)
	changed[50]++
	for name, row := range map[string]struct {
		request []byte
		want    string // "": nothing is wrong
	}{
		"a request":         {payload(1, 100), ""},
		"a changed request": {changed, "payload 1 of 112 bytes is not what was sent"},
	} {
		s := &servant{host: &host{tally: newTally()}}
		if _, err := s.echoHandler(t.Context(), row.request, nil); err != nil {
			t.Error(err)
		}
		if got := strings.Join(s.takeSample().Wrong, "; "); got != row.want {
			t.Errorf("%s: it says %q, want %q", name, got, row.want)
		}
	}
}

// TestClientFinds shows what a client reports as wrong about the fates of its messages.
func TestClientFinds(t *testing.T) {
	type fate = reconnect.Fate
	for name, row := range map[string]struct {
		all  []fate
		want string
	}{
		"one fate each":             {[]fate{{Tag: 1, Outcome: reconnect.Delivered}, {Tag: 2, Outcome: reconnect.Unknown}}, ""},
		"two fates":                 {[]fate{{Tag: 1, Outcome: reconnect.Delivered}, {Tag: 1, Outcome: reconnect.Unknown}}, "message 1 has two fates"},
		"sent again, and delivered": {[]fate{{Tag: 1, Outcome: reconnect.Unsent, Again: true}, {Tag: 1, Outcome: reconnect.Delivered}}, ""},
		"idempotent, sent again":    {[]fate{{Tag: 3, Outcome: reconnect.Unknown, Again: true}}, ""},
		"not idempotent, sent again": {
			[]fate{{Tag: 1, Outcome: reconnect.Unknown, Again: true}}, "message 1 may have arrived, and is sent again",
		},
		"never sent": {[]fate{{Tag: 9, Outcome: reconnect.Delivered}}, "message 9 has two fates"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &worker{host: &host{tally: newTally()}}
			talks := &talker{w: c, open: map[uint64]bool{1: false, 2: false, 3: true}}
			talks.handleFates(row.all)
			got := strings.Join(c.takeSample().Wrong, "; ")
			if row.want == "" && got != "" || !strings.Contains(got, row.want) {
				t.Errorf("it says %q, want %q", got, row.want)
			}
		})
	}
}
