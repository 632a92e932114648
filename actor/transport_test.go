package actor

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// pathOf returns the path of an identifier's connection, without the parts that the device
// determines.
func (w *world) pathOf(rt *Runtime, id *actor.PID) Path {
	w.Helper()
	for _, i := range rt.Inspect() {
		if i.PID.Equal(id) {
			p := i.Path
			if p.GIDType != "RoCE v2" || p.NetDev == "" || p.MTU != 1024 {
				w.Errorf("the path is %+v, want the twin's GID and MTU", p)
			}
			return way(p.TrafficClass, p.AckTimeout, p.RetryCount, p.RNRRetryCount)
		}
	}
	w.Fatalf("there is no %v", id)
	return Path{}
}

// way returns a Path with the values that a Transport can choose.
func way(class uint8, ack time.Duration, retries, rnr uint8) Path {
	return Path{TrafficClass: class, AckTimeout: ack, RetryCount: retries, RNRRetryCount: rnr}
}

// ack returns the timeout that InfiniBand's exponent means.
func ack(exponent int) time.Duration { return 4096 * time.Nanosecond << exponent }

// The fields of a runtime's Transport and of its identifiers' are those of the connections, on both
// sides and whether they are secured or not. A command's values override them.
func TestTransport(t *testing.T) {
	const usual = 19 // the twin's exponent
	for name, tt := range map[string]struct {
		runtime, client, server Transport
		dial                    Dial
		options                 []*cmid.SetOption // before it
		accept                  *ConnParam
		here, there             Path
	}{
		"defaults": {
			here: way(0, ack(usual), 6, 7), there: way(0, ack(usual), 6, 7),
		},
		"the runtime's": {
			runtime: Transport{TrafficClass: 104, AckTimeout: 100 * time.Millisecond, RetryCount: 4, RNRRetryCount: 2},
			here:    way(104, ack(15), 4, 2), there: way(104, ack(15), 4, 2),
		},
		"each side's, over the runtime's": {
			runtime: Transport{TrafficClass: 104, AckTimeout: 100 * time.Millisecond, RetryCount: 4, RNRRetryCount: 2},
			client:  Transport{AckTimeout: time.Millisecond, RNRRetryCount: 3}, server: Transport{TrafficClass: 8, RetryCount: 5},
			here: way(104, ack(8), 4, 2), there: way(8, ack(15), 5, 3),
		},
		"the peer's, where a listener says nothing": {
			client: Transport{TrafficClass: 104, AckTimeout: 100 * time.Millisecond, RetryCount: 4, RNRRetryCount: 2},
			here:   way(104, ack(15), 4, 7), there: way(104, ack(usual), 4, 2),
		},
		"a command's": {
			runtime: Transport{TrafficClass: 104, AckTimeout: 100 * time.Millisecond, RetryCount: 4, RNRRetryCount: 2},
			dial:    Dial{Param: &ConnParam{RetryCount: 1, RNRRetryCount: 1, ResponderResources: 1, InitiatorDepth: 1}},
			options: []*cmid.SetOption{{Option: cmid.OptionTOS, Value: 0}, {Option: cmid.OptionAckTimeout, Value: 0}},
			accept:  &ConnParam{RetryCount: 3, RNRRetryCount: 5, ResponderResources: 1, InitiatorDepth: 1},
			here:    way(0, 0, 1, 5), there: way(104, ack(15), 3, 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 0, func(w *world) {
				server, client := w.farProbe(), w.probe()
				// there is no listener at the first, and the second needs another identifier
				w.rt.resolve = addresses(there+":1", there+":7471")
				w.listen(server, IDConfig{Transport: tt.server})
				id := w.rt.CreateID(client.pid, IDConfig{Transport: tt.client})
				for _, o := range tt.options {
					client.send(id, o)
					next[*Done](client)
				}
				tt.dial.Addr = "there:7471"
				client.send(id, &tt.dial)
				_, s := next[*ConnectRequest](server)
				server.send(s, &Accept{Param: tt.accept})
				next[*Established](server)
				next[*Established](client)
				if p := w.pathOf(w.rt, id); p != tt.here {
					w.Errorf("who has dialled has %+v, want %+v", p, tt.here)
				}
				if p := w.pathOf(w.far, s); p != tt.there {
					w.Errorf("who has accepted has %+v, want %+v", p, tt.there)
				}
			}, Config{Transport: tt.runtime})
		})
	}
}

// A secured connection is accepted by the runtime, before its owner hears of it.
func TestTransportOfSecured(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		p := w.connect(secured(w))
		want := way(104, ack(15), 4, 2)
		if got := w.pathOf(w.rt, p.c); got != want {
			w.Errorf("who has dialled has %+v, want %+v", got, want)
		}
		if got := w.pathOf(w.far, p.s); got != want {
			w.Errorf("who has accepted has %+v, want %+v", got, want)
		}
	}, Config{Transport: Transport{TrafficClass: 104, AckTimeout: 100 * time.Millisecond, RetryCount: 4, RNRRetryCount: 2}})
}

// optionless is a device that refuses options, as a kernel may.
type optionless struct {
	cmid.Driver
	requests bool // only of the identifiers of requests
}

func (d optionless) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	in, err := d.Driver.Open(l, optionlessUp{up})
	return optionlessInstance{in, d.requests}, err
}

type optionlessInstance struct {
	cmid.Instance
	requests bool
}

func (optionlessInstance) Enclosed() bool { return true }

func (in optionlessInstance) CreateID(h cmid.Handle, ps cmid.PortSpace, t cmid.QPType) (cmid.DriverID, error) {
	id, err := in.Instance.CreateID(h, ps, t)
	if in.requests {
		return id, err
	}
	return optionlessID{id}, err
}

type optionlessUp struct{ cmid.Upcalls }

func (up optionlessUp) Event(h cmid.Handle, ev *cmid.DriverEvent) {
	if ev.Child != nil {
		ev.Child = optionlessID{ev.Child}
	}
	up.Upcalls.Event(h, ev)
}

type optionlessID struct{ cmid.DriverID }

func (id optionlessID) Do(cmd cmid.Command) error {
	if _, ok := cmd.(*cmid.SetOption); ok {
		return unix.EPERM
	}
	return id.DriverID.Do(cmd)
}

// An identifier whose device refuses its Transport is not made. A request comes from a peer: it is
// answered, and the log contains the missing setting.
func TestTransportRefused(t *testing.T) {
	var log bytes.Buffer
	with := Config{Transport: Transport{AckTimeout: time.Second}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	for _, requests := range []bool{false, true} {
		over := func(d cmid.Driver) cmid.Driver { return optionless{d, requests} }
		inWorldOfTwo(t, states.IWARP, untouched, over, func(w *world) {
			server := w.farProbe()
			if !requests {
				w.far.CreateID(server.pid, IDConfig{})
				c, _ := next[*Closed](server)
				is(w, c.Err, unix.EPERM)
				return
			}
			client := w.probe()
			w.listen(server)
			client.send(w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: there + ":7471"})
			_, s := next[*ConnectRequest](server)
			server.send(s, &Accept{})
			next[*Established](client)
			settle()
			if !strings.Contains(log.String(), "refuses a request's Transport") {
				w.Errorf("logged %s", &log)
			}
		}, with)
	}
}
