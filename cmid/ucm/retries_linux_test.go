package ucm

import (
	"testing"
	"unsafe"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/uabi"
	"github.com/rdmactor/rdmactor/verbs"
)

// counted is a queue pair that notes its retry counts.
type counted struct {
	fakeQP
	retries []uint8
}

func (q *counted) ModifyLater(a *verbs.QPAttr, mask verbs.QPAttrMask) verbs.Later {
	q.retries = append(q.retries, a.RetryCount)
	return q.fakeQP.ModifyLater(a, mask)
}

// TestRetriesEnd: soft-RoCE takes a retry count of 7 as no end, and would never report that a peer
// has vanished. Nobody asks for it without saying so, and a queue pair does not make more, whatever
// the peer has asked for.
func TestRetriesEnd(t *testing.T) {
	b := newBench(t)
	id := b.create().on(false)
	q := &counted{}
	id.dev.verbs, id.qp = roomy{}, q
	if p, _, err := id.connParam(nil, 0, 0, nil, 0); err != nil || p.RetryCount != 6 || p.RNRRetryCount != 7 {
		t.Errorf("without parameters %d retries, %d of RNR NAKs, %v; want 6 and 7", p.RetryCount, p.RNRRetryCount, err)
	}
	if p, _, _ := id.connParam(&cmid.ConnParam{RetryCount: 7}, 0, 0, nil, 0); p.RetryCount != 7 {
		t.Errorf("the peer is asked for %d retries, want 7 as said", p.RetryCount)
	}
	b.k.answer = func(w wrote, response []byte) error {
		if w.cmd == uabi.CommandInitQPAttr {
			(*uabi.QPAttr)(unsafe.Pointer(&response[0])).RetryCnt = 7
		}
		return nil
	}
	if _, err := id.climb(nil); err != nil {
		t.Fatal(err)
	}
	for _, n := range q.retries {
		if n != 6 {
			t.Errorf("the queue pair retries %d times, want 6", n)
		}
	}
	if len(q.retries) != 2 {
		t.Errorf("%d steps", len(q.retries))
	}
}
