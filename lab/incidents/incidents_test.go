package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Each of these tests verifies what docs/incidents.md states about an incident: the page's figures,
// the progress of the other clients, the remedy, and the end.

func TestSlowReader(t *testing.T) {
	p := begin(t, "slow-reader", "-trouble", "8s", "-calm", "5s")
	stuck := func(r row) bool {
		return r != nil && r.number("queued_messages") == 256 && r.number("unacked_messages") == 32 &&
			r.number("credits_send_messages") == 0 && r.number("waits_for_seconds") > 0
	}
	p.until("mallory's queue is full, and it has no credits", func() bool { return stuck(p.identifier("mallory")) })
	first, begun := p.identifier("mallory"), time.Now()
	p.until("it waits most of the time", func() bool {
		now := p.identifier("mallory")
		return now["id"] == first["id"] &&
			now.number("credit_wait_seconds")-first.number("credit_wait_seconds") > 0.5*time.Since(begun).Seconds() && time.Since(begun) > time.Second
	})
	p.measures("rdmactor_connection_waiting", positive)
	p.measures("rdmactor_connection_longest_credit_wait_seconds", positive)
	if top := p.rows("ids?sort=waits_for_seconds&order=desc&state=connected")[0]; top["id"] != first["id"] {
		t.Errorf("the first of those that wait is %v, and mallory is %v", top, first)
	}
	if p.clients()["mallory"].number("missed_messages") == 0 {
		t.Error("nothing was refused")
	}
	p.goOn(others...)
	for _, name := range others {
		p.until(name+" gets 400 messages a second", func() bool {
			rate := p.clients()[name].number("messages_a_second")
			return rate > 300 && rate < 500
		})
	}

	p.until("it reads all", func() bool {
		now := p.identifier("mallory")
		return now != nil && now.number("queued_messages") == 0 && now.number("waits_for_seconds") == 0
	})
	p.until("mallory is slow again", func() bool { return stuck(p.identifier("mallory")) })
	var outcome map[string]string
	p.do(http.MethodPost, "actions/disconnect", fmt.Sprintf(`{"id": %v}`, first["id"]), &outcome)
	p.until("mallory is connected anew", func() bool {
		now := p.identifier("mallory")
		return now != nil && now["id"] != first["id"]
	})
	p.goOn(others...)
}

func TestMemoryShort(t *testing.T) {
	p := begin(t, "memory-short", "-trouble", "8s", "-calm", "5s")
	receive := func() row {
		for _, r := range p.rows("memory") {
			if r.text("pool") == "receive" {
				return r
			}
		}
		t.Fatal("the page has no pool receive")
		return nil
	}
	uploads := make([]string, 6)
	for i := range uploads {
		uploads[i] = fmt.Sprint("upload-", i+1)
	}
	p.until("the six wait for memory", func() bool { return receive().number("waiting_connections") == 6 })
	r := receive()
	if r.number("limit_bytes") != shortMemory || r.number("used_bytes") < shortMemory/4 || r.number("used_bytes") > shortMemory/2 {
		t.Errorf("the pool is %v", r)
	}
	p.measures("rdmactor_pool_waiting", func(v float64) bool { return v == 6 })
	p.measures("rdmactor_device_retained_messages", func(v float64) bool { return v >= 20 })
	if d := p.rows("devices")[0]; d.number("retained_messages") < 20 {
		t.Errorf("the device is %v", d)
	}
	for _, name := range uploads {
		if id := p.identifier(name); id.number("unfreed_messages") < 2 {
			t.Errorf("%s: %v", name, id)
		}
	}
	for _, name := range others {
		if id := p.identifier(name); id.number("unfreed_messages") > 1 {
			t.Errorf("%s: %v", name, id)
		}
	}
	top := p.rows("ids?sort=unfreed_messages&order=desc")
	for i := range uploads {
		if top[i].number("unfreed_messages") < 2 {
			t.Errorf("of those with most that is not freed the one at %d is %v", i, top[i])
		}
	}
	before := p.clients()
	p.goOn(others...)
	p.until("nobody waits, and nothing is retained", func() bool {
		return receive().number("waiting_connections") == 0 && p.rows("devices")[0].number("retained_messages") == 0
	})
	p.goOn(append(uploads, others...)...)
	for name, now := range p.clients() {
		if now["identifier"] != before[name]["identifier"] {
			t.Errorf("%s has lost its connection", name)
		}
	}
}

func TestBlockedLoop(t *testing.T) {
	p := begin(t, "blocked-loop", "-trouble", "8s", "-calm", "5s")
	blocked := func() row {
		for _, r := range p.rows("loops") {
			if r.number("blocked_seconds") > 1 {
				return r
			}
		}
		return nil
	}
	var loop row
	p.until("a loop is blocked", func() bool { loop = blocked(); return loop != nil })
	if !strings.HasPrefix(loop.text("blocked_by"), "runnable actor rdma$") || loop.number("turn_seconds") < 1 {
		t.Errorf("the loop is %v", loop)
	}
	p.measures("rdmactor_loop_blocked", positive)
	var about struct{ Blocked string }
	p.do(http.MethodGet, "?format=json", "", &about)
	if about.Blocked != loop.text("name") {
		t.Errorf("the overview says that %q is blocked", about.Blocked)
	}
	var here, elsewhere []string
	// in any state, because a blocked loop reports outdated ones
	for _, r := range p.rows("ids") {
		for name, c := range p.clients() {
			switch {
			case c["identifier"] != r["id"]:
			case r["loop"] == loop["name"]:
				here = append(here, name)
				if r.number("old_seconds") >= 0 && r.number("old_seconds") < 1 {
					t.Errorf("the figures of %s are as new as if its loop went on: %v", name, r)
				}
			default:
				elsewhere = append(elsewhere, name)
			}
		}
	}
	if len(here) < 2 || len(elsewhere) < 2 {
		t.Errorf("on the blocked loop are %q, on the other one %q", here, elsewhere)
	}
	for _, name := range here {
		if c := p.clients()[name]; c.number("silent_seconds") < 1 {
			t.Errorf("%s is on the blocked loop, and goes on: %v", name, c)
		}
	}
	p.goOn(elsewhere...)
	p.logs("eventloop: stalled", "loop="+loop.text("name"), "holder=", "waitForOthers")
	p.until("no loop is blocked", func() bool { return blocked() == nil })
	for _, r := range p.rows("loops") {
		if r["name"] == loop["name"] && (r.number("longest_turn_seconds") < 1 || r.number("recent_turn_seconds") < 1) {
			t.Errorf("the loop has forgotten: %v", r)
		}
	}
	p.measures("rdmactor_loop_recent_turn_seconds", func(v float64) bool { return v > 1 })
	p.goOn(here...) // over their previous connections
}

func TestPeerGone(t *testing.T) {
	p := begin(t, "peer-gone", "-trouble", "8s", "-calm", "5s")
	var lost row
	p.until("mallory's connection waits for credits that do not come", func() bool {
		lost = p.identifier("mallory")
		return lost != nil && lost.number("waits_for_seconds") > 1
	})
	p.measures("rdmactor_connection_longest_credit_wait_seconds", positive)
	p.until("its identifier is gone", func() bool {
		return p.clients()["mallory"].number("identifier") == 0
	})
	p.logs("connection broken off", fmt.Sprint("id=", lost["id"]), "without the peer's goodbye", "nothing was heard from it for 3.", "timed out")
	found := false
	for _, r := range p.rows("flight?kind=end") {
		found = found || r["id"] == lost["id"]
	}
	if !found {
		t.Errorf("the flight recorder has no end of %v", lost["id"])
	}
	p.goOn(others...)
	p.until("mallory is connected anew", func() bool {
		now := p.clients()["mallory"]
		return now.number("identifier") != 0 && now["identifier"] != lost["id"] && now.number("silent_seconds") < 1
	})
}

func TestStorm(t *testing.T) {
	p := begin(t, "storm", "-trouble", "8s", "-calm", "5s")
	crowd := func() row { return p.rows("sections/dials")[0] }
	requests := p.rows("listeners")[0].number("requests")
	p.until("most of the crowd wait for their turn to dial", func() bool { return crowd().number("in_line") > 100 })
	if c := crowd(); c.number("dialing") > 64+1 {
		t.Errorf("more dial at a time than may: %v", c)
	}
	p.goOn(others...)
	p.until("all are connected again", func() bool {
		return crowd().number("crowd") == crowdSize && crowd().number("in_line") == 0
	})
	p.measures("rdmactor_listener_requests_total", func(v float64) bool { return v >= crowdSize+4 })
	l := p.rows("listeners")[0]
	if requests > 2*crowdSize || l.number("requests") < crowdSize+4 {
		t.Errorf("there have been %v requests, then %v", requests, l)
	}
	for _, name := range []string{"timed_out", "dropped", "refused_limits", "refused_memory", "strangers"} {
		if l.number(name) != 0 {
			t.Errorf("%s of the listener: %v", name, l)
		}
	}
}

// TestEnds: -for ends it, and so does Ctrl-C in the middle (each of the tests above); wrong flags
// are errors.
func TestEnds(t *testing.T) { // alone, so that a few seconds are enough to begin
	out := &screen{}
	if err := run(t.Context(), []string{"slow-reader", "-for", "5s"}, out, io.Discard); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "-- for 20s: mallory reads") {
		t.Errorf("it printed %q", out)
	}
	for _, line := range []string{"", "no-such", "storm twice", "storm -for -1s", "storm -calm 0s", "storm -x"} {
		if err := run(t.Context(), strings.Fields(line), io.Discard, io.Discard); err == nil {
			t.Errorf("%q is no error", line)
		}
	}
}

// TestNoCrowd: an incident without a crowd rejects its members.
func TestNoCrowd(t *testing.T) {
	p := begin(t, "blocked-loop")
	s := p.stage
	owner := s.system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, s.clients.OnLoop()))
	id := s.clients.CreateID(owner)
	_, err := rdma.Ask[*rdma.Established](t.Context(), s.clients, id, &rdma.Dial{Addr: s.at, PrivateData: []byte(crowdName)})
	if err == nil || !strings.Contains(err.Error(), "who are you?") {
		t.Errorf("%v", err)
	}
}
