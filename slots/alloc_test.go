//go:build !race

package slots

import (
	"io"
	"testing"
)

// A slot's round trip allocates nothing. (The race detector makes pools drop items on purpose.)
func TestNoAllocationPerSlot(t *testing.T) {
	near, far := pipe(t, openRuntime(t), Config{Slots: 8, Size: 10_000})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			r, err := far.Receive(t.Context())
			if err != nil {
				if err != io.EOF { //nolint:errorlint // it is io.EOF itself
					t.Error(err)
				}
				return
			}
			s, err := far.Reserve(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			n := copy(s.Bytes(), r.Bytes())
			r.Release()
			if err := s.Send(n); err != nil {
				t.Error(err)
			}
		}
	}()
	allocs := testing.AllocsPerRun(2000, func() {
		s, err := near.Reserve(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(10_000); err != nil {
			t.Fatal(err)
		}
		r, err := near.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.Release()
	})
	_ = near.End()
	<-done
	if allocs >= 1 {
		t.Errorf("a slot there and back takes %v allocations", allocs)
	}
}
