package rdmanet

import (
	"errors"
	"io"
	"testing"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Bytes that arrive after dropped ones are not read: a stream must not have gaps.
func TestNoHoles(t *testing.T) {
	r := reader{waiter: waiter{rt: new(rdma.Runtime), wake: newWake()}}
	message := func() *rdma.Received { return &rdma.Received{Data: make([]byte, smallMax+1)} }
	for range 2 {
		if _, err := r.storeMessage(message()); err != nil {
			t.Fatal(err)
		}
	}
	ended := errors.New("ended")
	r.failWait(ended)
	p := make([]byte, 10*smallMax)
	read := func() int {
		n, err := r.read(p)
		if err != nil && !errors.Is(err, ended) {
			t.Error(err)
		}
		return n
	}
	first := read()
	if _, err := r.storeMessage(message()); err != nil {
		t.Error(err)
	}
	if second, third := read(), read(); first != smallMax+1 || second != smallMax+1 || third != 0 {
		t.Errorf("read %d, %d and %d bytes", first, second, third)
	}
}

// sparing is a Writer that takes fewer bytes than it is given, and returns no error.
type sparing struct{}

func (sparing) Write(p []byte) (int, error) { return len(p) / 2, nil }

// A Writer that does not take all bytes ends WriteTo, as it ends io.Copy: bytes would be missing.
func TestShortWrites(t *testing.T) {
	for _, n := range []int{smallMax, smallMax + 1} {
		r := reader{waiter: waiter{rt: new(rdma.Runtime), wake: newWake()}}
		if _, err := r.storeMessage(&rdma.Received{Data: make([]byte, n)}); err != nil {
			t.Fatal(err)
		}
		r.failWait(errors.New("ended"))
		if k, _, err := r.writeTo(sparing{}); k != int64(n/2) || !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%d of %d bytes, %v", k, n, err)
		}
	}
}

// A stream works with one credit, so that only one message of the peer's is kept at a time.
func TestOneCredit(t *testing.T) {
	client, server := pipe(t, openRuntime(t), Config{Credits: 1})
	go func() {
		_, _ = client.Write(make([]byte, 100_000))
		_ = client.CloseWrite()
	}()
	if n, err := io.Copy(io.Discard, server); n != 100_000 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}
