//go:build !race

package rdmanet

import (
	"io"
	"testing"
)

// A round trip allocates nothing, except the device's notice for every sixteenth message. (The race
// detector makes pools drop items on purpose.)
func TestNoAllocationPerMessage(t *testing.T) {
	client, server := pipe(t, openRuntime(t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.CopyBuffer(struct{ io.Writer }{server}, struct{ io.Reader }{server}, make([]byte, 4096))
	}()
	for _, size := range []int{64, 10_000} {
		p := make([]byte, size)
		allocs := testing.AllocsPerRun(1000, func() {
			if _, err := client.Write(p); err != nil {
				t.Error(err)
			}
			if _, err := io.ReadFull(client, p); err != nil {
				t.Error(err)
			}
		})
		if allocs >= 1 {
			t.Errorf("a round trip of %d bytes takes %v allocations", size, allocs)
		}
	}
	_ = client.CloseWrite()
	<-done
}
