package contest

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/lab/measure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(leak.Settled{M: m}) }

// TestLies: an answer that differs from the message fails its call.
func TestLies(t *testing.T) {
	lie := func(_ int, p, room []byte) ([]byte, error) {
		copy(room, p)
		room[len(room)-1]++
		return room, nil
	}
	if s, err := Together(2, PayloadSize, time.Second, true, lie); err == nil || s.N > 0 {
		t.Errorf("%d calls and %v, want an error at once", s.N, err)
	}
	tr := &trips{payload: NewPayload(PayloadSize), times: stats.NewTimes(2)}
	if done, err := tr.handleMessage([]byte("something else"), nil); err == nil || !done {
		t.Errorf("an actor's answer that is something else: %v", err)
	}
}

// TestOurs: each contestant echoes and frees everything. Those that can also send one way.
func TestOurs(t *testing.T) {
	flow := Flow{Size: 4096, Batch: 4, Window: 16}
	oneWay := map[string]bool{"verbs": true, "actor": true, "net.Conn": true, "read/write": true, cryptoTLS: true}
	for name := range Ours {
		for _, e := range append(Blocking(name), measure.Entry{Contestant: name, CRC: true, Loops: 2}) {
			t.Run(e.Name(), func(t *testing.T) {
				if err := (measure.Scenario{Serve: Ours.Serve, Dial: Ours.Dial}).Try(e); err != nil {
					t.Error(err)
				}
				if oneWay[name] {
					if err := (measure.Scenario{Serve: flow.Serve, Dial: flow.Dial}).Try(e); err != nil {
						t.Error(err)
					}
				} else if _, err := flow.Serve(e); err == nil {
					t.Error("it serves one way")
				}
			})
		}
	}
}

func TestAEAD(t *testing.T) {
	f := Flow{Size: 1 << 10, Window: 2}
	s := measure.Scenario{Serve: f.Serve, Dial: f.Dial}
	for name := range aeadKeys {
		if err := s.Try(Blocking(name)[0]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Try(Blocking("ROT13")[0]); err == nil {
		t.Error("that is none")
	}
}
