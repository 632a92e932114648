package ucm

import (
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/verbs"
)

// counted is a queue pair that notes its retry counts and traffic classes.
type counted struct {
	fakeQP
	retries []uint8
	classes []uint8
}

func (q *counted) ModifyLater(a *verbs.QPAttr, mask verbs.QPAttrMask) verbs.Later {
	q.retries, q.classes = append(q.retries, a.RetryCount), append(q.classes, a.AH.GRH.TrafficClass)
	return q.fakeQP.ModifyLater(a, mask)
}

// TestRetriesEnd: soft-RoCE takes a retry count of 7 as no end, and would never report that a peer
// has vanished. It is used only on request, and a queue pair does not retry more often, whatever
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
	if _, err := id.prepareRTS(nil); err != nil {
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

// TestAcceptChooses: on the accepting side the kernel's attributes contain the peer's choice. The
// side's traffic class and retries take their place, if it has any, and Path reports so. The
// peer's pause before it tries again to find a receive is 0.64 ms, or this side's: the kernel
// leaves it at 0, which means 655 ms.
func TestAcceptChooses(t *testing.T) {
	own := &cmid.ConnParam{RetryCount: 2, RNRRetryCount: 7, MinRNRTimer: 20}
	for _, tt := range []struct {
		tos   int // -1: none was set
		param *cmid.ConnParam
		want  cmid.Path
	}{
		{-1, nil, cmid.Path{GIDIndex: 3, SL: 4, TrafficClass: 8, MTU: 4096, AckTimeout: 67108864, RetryCount: 5, RNRRetryCount: 6, MinRNRTimer: 640 * time.Microsecond}},
		{0, own, cmid.Path{GIDIndex: 3, SL: 4, TrafficClass: 0, MTU: 4096, AckTimeout: 67108864, RetryCount: 2, RNRRetryCount: 6, MinRNRTimer: 10240 * time.Microsecond}},
		{104, own, cmid.Path{GIDIndex: 3, SL: 4, TrafficClass: 104, MTU: 4096, AckTimeout: 67108864, RetryCount: 2, RNRRetryCount: 6, MinRNRTimer: 10240 * time.Microsecond}},
	} {
		b := newBench(t)
		id := b.create().on(false)
		q := &counted{}
		id.dev.verbs, id.qp = roomy{}, q
		b.k.answer = func(w wrote, response []byte) error {
			if w.cmd == uabi.CommandInitQPAttr {
				a := (*uabi.QPAttr)(unsafe.Pointer(&response[0]))
				a.RetryCnt, a.RNRRetry, a.Timeout, a.PathMTU, a.AHAttr.SL = 5, 6, 14, 5, 4
				a.AHAttr.GRH.SGIDIndex, a.AHAttr.GRH.TrafficClass = 3, 8
			}
			return nil
		}
		if id.Path() != (cmid.Path{}) {
			t.Errorf("before there is a connection: %+v", id.Path())
		}
		if tt.tos >= 0 {
			if err := id.Do(&cmid.SetOption{Option: cmid.OptionTOS, Value: tt.tos}); err != nil {
				t.Fatal(err)
			}
		}
		id.phase = half
		if err := id.Do(&cmid.Accept{Param: tt.param}); !errors.Is(err, cmid.ErrPending) {
			t.Fatal(err)
		}
		b.until("the answer", func() bool { return len(b.up.done) == 1 })
		if got := id.Path(); got != tt.want || q.retries[1] != tt.want.RetryCount || q.classes[0] != tt.want.TrafficClass {
			t.Errorf("TOS %d: %+v, the queue pair was told %v and %v, want %+v", tt.tos, got, q.retries, q.classes, tt.want)
		}
	}
}

// TestGIDsAreReadAgain: the table of GIDs is cached for a second, so that many connections cost
// few files, and an address that has gone is soon not shown.
func TestGIDsAreReadAgain(t *testing.T) {
	now, at, was := time.Now(), place{1, 3}, gidAttr{"RoCE v2", "eth0.5"}
	d := &device{name: "no such device", gids: gids{now, map[place]gidAttr{at: was}}}
	if got := d.lookUpGID(hostSysfs, now.Add(gidsFor), at); got != was {
		t.Errorf("within a second %+v, want %+v", got, was)
	}
	if got := d.lookUpGID(hostSysfs, now, place{2, 3}); got != (gidAttr{}) {
		t.Errorf("another port's is %+v", got)
	}
	if got := d.lookUpGID(hostSysfs, now.Add(gidsFor+1), at); got != (gidAttr{}) {
		t.Errorf("later %+v, want what is there now, which is nothing", got)
	}
}
