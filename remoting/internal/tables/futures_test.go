package tables

import (
	"strconv"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// When as many futures wait as may, those that are gone make room soon, and looking for them costs
// little.
func TestFuturesGoneMakeRoom(t *testing.T) {
	f := MakeFutures(1)
	looks, waits, process := 0, true, actor.NewActorProcess(nil)
	alive := func(string) bool { looks++; return waits }
	for i := range FuturesMost {
		if !f.Room(alive) {
			t.Fatalf("no room for future %d", i)
		}
		f.Next()
		f.Add(Request{Future: actor.NewPID("", strconv.Itoa(i)), Process: process})
	}
	looks = 0
	for range 1000 {
		if f.Room(alive) {
			t.Fatal("there are too many")
		}
	}
	if looks > 1000*roomLooks {
		t.Errorf("%d looks", looks)
	}
	waits = false
	if !f.Room(alive) {
		t.Error("those that are gone make no room")
	}
}

// Sweep finds all futures that are gone, some at a time, and keeps the others.
func TestSweepFutures(t *testing.T) {
	const futures = 3 * sweepLooks
	f := MakeFutures(1)
	process := actor.NewActorProcess(nil)
	for i := range futures {
		f.Next()
		f.Add(Request{Future: actor.NewPID("", strconv.Itoa(i%2)), Process: process, Token: uint32(i)})
	}
	looks := 0
	for range 4 {
		looks = 0
		f.Sweep(func(id string) bool { looks++; return id == "1" })
		if looks > sweepLooks {
			t.Errorf("%d looks", looks)
		}
	}
	if f.Waiting() != futures/2 {
		t.Errorf("%d wait, want %d", f.Waiting(), futures/2)
	}
	if _, ok := f.Take(slotPrefix+"1.1", 1); !ok {
		t.Error("one that waits is gone")
	}
	if !f.Late(slotPrefix+"1.0", 0) {
		t.Error("a late answer is taken for a guess")
	}
}

// Only the tokens of the latest requests are remembered, whatever slots they had.
func TestLateTokens(t *testing.T) {
	f := MakeFutures(1)
	process := actor.NewActorProcess(nil)
	for i := uint32(1); i <= 2*goneMost; i++ {
		name := f.Next()
		f.Add(Request{Process: process, Token: i})
		if f.Late(name, i) {
			t.Fatal("a request that waits is late")
		}
		f.Take(name, i)
	}
	for token, want := range map[uint32]bool{goneMost: false, goneMost + 1: true, 2 * goneMost: true, 2*goneMost + 1: false} {
		if got := f.Late(slotPrefix+"1.0", token); got != want {
			t.Errorf("token %d is late: %t", token, got)
		}
	}
}
