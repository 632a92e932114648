package inspect

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/states"
)

// TestTroubleSortsFirst: of each identifier an operator sees the worst trouble, and sorted by it,
// the worst is the first row; those without trouble stay in the order of their numbers.
func TestTroubleSortsFirst(t *testing.T) {
	id := func(n rdma.Handle, loop string, state states.State) rdma.IDInfo {
		return rdma.IDInfo{ID: n, PID: actor.NewPID("", "id"), Loop: loop, State: state, InState: time.Hour}
	}
	calm, other := id(1, "calm", states.Connected), id(2, "calm", states.Listening)
	stuck := id(3, "calm", states.Connecting)
	retains := id(4, "short", states.Connected)
	retains.Credits.Unfreed = 3
	slow := id(5, "calm", states.Connected)
	slow.Credits.Queued, slow.Traffic.WaitsFor = 256, time.Millisecond
	silent := id(6, "calm", states.Connected)
	silent.Traffic.WaitsFor = 2 * time.Second
	burst := id(7, "calm", states.Connected) // a short wait of every connection
	burst.Credits.Queued, burst.Traffic.WaitsFor = 3, time.Millisecond
	failed := id(8, "calm", states.Failed)
	blocked := id(9, "blocked", states.Connected)
	blocked.Traffic.WaitsFor = time.Minute

	loops := []rdma.LoopInfo{
		{Name: "calm"},
		{Name: "blocked", Blocked: &rdma.Blocked{For: time.Second}},
		{Name: "short", Memory: []rdma.PoolInfo{{Waiting: 1}}},
	}
	s := &snapshot{
		ids:      []rdma.IDInfo{calm, other, stuck, retains, slow, silent, burst, failed, blocked},
		taken:    time.Now(),
		troubles: troublesOf(loops),
	}
	q := query{sort: sortByTrouble, descending: true, page: 1, size: 50}
	want := []struct {
		id      uint64
		trouble string
	}{
		{9, "loop blocked"},
		{8, "failed"},
		{6, "peer takes nothing"},
		{5, "peer is slow"},
		{4, "retains memory"},
		{3, "no answer"},
		{1, ""},
		{2, ""},
		{7, ""},
	}
	for n, row := range q.selectPage(s).Rows {
		if row.ID != want[n].id || row.Trouble != want[n].trouble {
			t.Errorf("row %d: identifier %d, %q; want %d, %q", n, row.ID, row.Trouble, want[n].id, want[n].trouble)
		}
	}
}
