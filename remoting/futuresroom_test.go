package remoting

import (
	"strconv"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// When as many futures wait as may, those that are gone make room soon, and looking for them costs
// little.
func TestFuturesGoneMakeRoom(t *testing.T) {
	var f futures
	looks, waits := 0, true
	alive := func(string) bool { looks++; return waits }
	for i := range futuresMost {
		if !f.room(alive) {
			t.Fatalf("no room for future %d", i)
		}
		f.next()
		f.add(request{future: actor.NewPID("", strconv.Itoa(i))})
	}
	looks = 0
	for range 1000 {
		if f.room(alive) {
			t.Fatal("there are too many")
		}
	}
	if looks > 1000*looksMost {
		t.Errorf("%d looks", looks)
	}
	waits = false
	if !f.room(alive) {
		t.Error("those that are gone make no room")
	}
}
