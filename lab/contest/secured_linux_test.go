package contest

import (
	"testing"

	"github.com/rdmactor/rdmactor/lab/measure"
)

// TestSecured: the contestants with security echo, send one way and connect in each mode.
func TestSecured(t *testing.T) {
	flow := Flow{Size: 4096, Batch: 4, Window: 16}
	for _, e := range append(EachMode(Blocking("actor")), Blocking(cryptoTLS)...) {
		t.Run(e.Name(), func(t *testing.T) {
			for what, s := range map[string]measure.Scenario{
				"echo": {Serve: Ours.Serve, Dial: Ours.Dial}, "one way": {Serve: flow.Serve, Dial: flow.Dial},
				"connect": {Serve: ServeConnect, Dial: DialConnect, Cold: true},
			} {
				if err := s.Try(e); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
	e := Blocking("actor")[0]
	e.Secured = "whispering"
	if _, err := Ours.Serve(e); err == nil {
		t.Error("there is no such mode")
	}
	mixed := Blocking("actor")[0]
	mixed.Secured = "PSK"
	svc, err := Ours.Serve(mixed)
	if err != nil {
		t.Fatal(err)
	}
	defer svc.Close()
	mixed.Secured = ""
	if _, err := Ours.Dial(svc.Addr, mixed); err == nil {
		t.Error("a secured server answers a client that is not secured")
	}
}
