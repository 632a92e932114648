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
	looks, waits := 0, true
	alive := func(string) bool { looks++; return waits }
	for i := range FuturesMost {
		if !f.Room(alive) {
			t.Fatalf("no room for future %d", i)
		}
		f.Next()
		f.Add(Request{Future: actor.NewPID("", strconv.Itoa(i))})
	}
	looks = 0
	for range 1000 {
		if f.Room(alive) {
			t.Fatal("there are too many")
		}
	}
	if looks > 1000*looksMost {
		t.Errorf("%d looks", looks)
	}
	waits = false
	if !f.Room(alive) {
		t.Error("those that are gone make no room")
	}
}
