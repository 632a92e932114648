package rdmanet

import (
	"errors"
	"testing"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// What comes behind something that was not kept is not read: the stream has no holes.
func TestNoHoles(t *testing.T) {
	r := reader{waiter: waiter{wake: newWake()}, limit: 2}
	message := func() *rdma.Received { return &rdma.Received{Data: make([]byte, smallMax+1)} }
	for range 2 {
		if _, wrong := r.take(message()); wrong != "" {
			t.Fatal(wrong)
		}
	}
	if _, wrong := r.take(message()); wrong == "" {
		t.Error("more was kept than the peer has credits for")
	}
	ended := errors.New("ended")
	r.end(ended)
	p := make([]byte, 10*smallMax)
	read := func() int {
		n, err := r.read(p)
		if err != nil && !errors.Is(err, ended) {
			t.Error(err)
		}
		return n
	}
	first := read()
	if _, wrong := r.take(message()); wrong != "" {
		t.Error(wrong)
	}
	if second, third := read(), read(); first != smallMax+1 || second != smallMax+1 || third != 0 {
		t.Errorf("read %d, %d and %d bytes", first, second, third)
	}
}
