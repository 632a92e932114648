package reconnect_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// An owner that logs its messages with %v gets a line with the counts and the cause.
func TestEventsInLogs(t *testing.T) {
	lost, counts := errors.New("lost"), reconnect.Counts{Delivered: 3, Unknown: 1}
	fates := []reconnect.Fate{{Tag: 7, Outcome: reconnect.Unknown}}
	for want, event := range map[string]any{
		"generation 2 is down: 3 delivered, 0 unsent, 1 unknown, 4 waiting, fates [{7 unknown false}]: lost": &reconnect.Down{
			Generation: 2, Counts: counts, Waiting: 4, Fates: fates, Err: lost,
		},
		"closed: 3 delivered, 0 unsent, 1 unknown": &reconnect.Closed{Counts: counts},
	} {
		if got := fmt.Sprintf("%v", event); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
