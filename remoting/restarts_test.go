package remoting_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// ledgerVariable is the file to which a process appends each message of its ledger.
const ledgerVariable = "REMOTING_LEDGER"

// keepLedger writes each message to the ledger before it answers. What is written is kept if the
// process is killed.
func keepLedger() actor.ReceiveFunc {
	f, err := os.OpenFile(os.Getenv(ledgerVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.StringValue); ok && err == nil {
			if _, err = f.WriteString(m.Value + "\n"); err == nil {
				ctx.Respond(m)
			}
		}
	}
}

// fates are how the requests of one sender ended.
type fates map[int]error

// ask sends requests until stop, sixteen at a time.
func (f fates) ask(t *testing.T, n *node, to *actor.PID, sender int, stop <-chan struct{}) {
	for i := 1; ; {
		var batch []actor.Future
		for range 16 {
			batch = append(batch, n.sys.Root.RequestFuture(to, text(fmt.Sprint(sender, " ", i+len(batch))), soon))
		}
		for _, one := range batch {
			_, err := remoting.Result(one)
			f[i] = err
			var unknown *remoting.Unknown
			var refused *remoting.Refused
			if err != nil && !errors.As(err, &unknown) && !errors.As(err, &refused) && !errors.Is(err, actor.ErrDeadLetter) {
				t.Errorf("request %d of sender %d: %v", i, sender, err)
			}
			i++
		}
		select {
		case <-stop:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// A node is restarted a hundred times while four senders make requests: every second time it is
// killed, otherwise it leaves. Each request has an outcome. One that is answered was received once,
// one whose fate is unknown at most once, another one not at all, and all in order.
func TestLedgerOfRestarts(t *testing.T) {
	restarts := 100
	if testing.Short() {
		restarts = 10
	}
	file := filepath.Join(t.TempDir(), "ledger")
	t.Setenv(ledgerVariable, file)
	name := freeName(t)
	a := start(t, remoting.Config{Patience: 500 * time.Millisecond})
	a.events.stop()
	b := run(t, name)
	target, stop := b.pid("ledger"), make(chan struct{})
	senders := [4]fates{}
	var all sync.WaitGroup
	for s := range senders {
		senders[s] = make(fates)
		all.Go(func() { senders[s].ask(t, a, target, s, stop) })
	}
	for i := range restarts {
		eventually(t, "it is not connected again", func() bool {
			_, err := a.ask(actor.NewPID(name, "echo"), text("x"))
			return err == nil
		})
		if i%2 == 0 {
			b.kill()
		} else {
			b.leave()
		}
		b = run(t, name)
	}
	close(stop)
	all.Wait()
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	received, last := make(map[[2]int]bool), make(map[int]int)
	for line := range strings.Lines(string(written)) {
		var s, n int
		if _, err := fmt.Sscan(line, &s, &n); err != nil || n <= last[s] {
			t.Fatalf("message %q after %d: %v", line, last[s], err)
		}
		last[s], received[[2]int{s, n}] = n, true
	}
	answered, unknown, others := 0, 0, 0
	for s, f := range senders {
		for n, err := range f {
			got := received[[2]int{s, n}]
			switch {
			case err == nil:
				if answered++; !got {
					t.Errorf("request %d of sender %d was answered, and not received", n, s)
				}
			case errors.As(err, new(*remoting.Unknown)):
				unknown++
			default:
				if others++; got {
					t.Errorf("request %d of sender %d was received: %v", n, s, err)
				}
			}
		}
	}
	t.Logf("%d answered, %d unknown, %d others", answered, unknown, others)
	if answered == 0 || unknown == 0 {
		t.Error("the restarts were not in the middle of requests")
	}
}
