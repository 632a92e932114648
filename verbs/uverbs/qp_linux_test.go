package uverbs

import (
	"os"
	"slices"
	"testing"

	"github.com/rdmactor/rdmactor/verbs"
)

// TestDestroyLeavesMulticastGroups: the kernel refuses to destroy a queue pair that is attached to
// a group.
func TestDestroyLeavesMulticastGroups(t *testing.T) {
	f := newFake(t)
	r, w, err := os.Pipe()
	f.must(err)
	defer func() { f.must(w.Close()); f.must(r.Close()) }()
	f.d.hw = kernelOf(t, os.DevNull)
	null := f.d.hw.(*kernel).fd
	f.d.hw.(*kernel).fd = int(w.Fd()) // the commands to the kernel can be read
	defer func() { f.d.hw.(*kernel).fd = null }()
	f.q.typ, f.q.handle = verbs.UD, 5
	one, two, three := [16]byte{15: 1}, [16]byte{15: 2}, [16]byte{15: 3}
	f.must(f.q.Attach(one, 7))
	f.must(f.q.Attach(two, 7))
	f.must(f.q.Attach(two, 7)) // the kernel counts it once
	f.must(f.q.Attach(three, 8))
	f.must(f.q.Detach(one, 7))
	f.must(f.q.Destroy())

	delivered := make([]byte, pageLen)
	n, err := r.Read(delivered)
	f.must(err)
	var got []uint32
	var left []attachMcast
	for delivered = delivered[:n]; len(delivered) > 0; {
		h := typedAt[cmdHdr](delivered, 0)
		got = append(got, h.Command)
		if h.Command == cmdDetachMcast {
			left = append(left, *typedAt[attachMcast](delivered, hdrLen))
		}
		delivered = delivered[4*int(h.InWords):]
	}
	want := []uint32{
		cmdAttachMcast, cmdAttachMcast, cmdAttachMcast, cmdAttachMcast, cmdDetachMcast, cmdModifyQP, cmdDetachMcast, cmdDetachMcast, cmdDestroyQP,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the kernel got %d, want %d", got, want)
	}
	if want := []attachMcast{{one, 5, 7, 0}, {two, 5, 7, 0}, {three, 5, 8, 0}}; !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
	if f.cq.users != 0 {
		t.Errorf("%d queues still complete there", f.cq.users)
	}
}
