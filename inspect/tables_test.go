package inspect

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// TestLinksSection: a link that cannot connect, and one that can, are rows of the page.
func TestLinksSection(t *testing.T) {
	var rt *rdma.Runtime
	r := newRig(t, Config{Interval: minInterval, Sections: []Section{
		Rows("links", "Links", func() []reconnect.LinkInfo { return reconnect.Links(rt) }),
	}}, rdma.Config{})
	rt = r.rt
	addr := r.echo()
	owner := r.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, r.rt.OnLoop()))
	fails := func(context.Context, string) (string, error) { return "", &longError{} }
	reconnect.Spawn(r.rt, owner, reconnect.Config{Dial: rdma.Dial{Addr: addr.String()}})
	reconnect.Spawn(r.rt, owner, reconnect.Config{
		Dial: rdma.Dial{Addr: "nowhere:1"}, Resolve: fails, Backoff: reconnect.Backoff{First: time.Hour, Most: time.Hour},
	})
	var rows []map[string]any
	r.until("one is up, and one has failed", func() bool {
		rows = read[sectionView](r, "sections/links").Rows
		return len(rows) == 2 && rows[0]["state"] == "up" && rows[1]["state"] == "pausing"
	})
	if up := rows[0]; up["addr"] != addr.String() || up["failed"] != 0.0 || up["last_err"] != "" || up["next_try"] != "" {
		t.Errorf("up: %v", up)
	}
	down := rows[1]
	next, err := time.Parse(time.RFC3339, down["next_try"].(string))
	if text := down["last_err"].(string); err != nil || next.Before(time.Now().Add(-time.Minute)) || down["failed"] != 1.0 ||
		!strings.HasPrefix(text, "nowhere:1: the address is not known: no") || len(text) > longest+8 {
		t.Errorf("pausing: %v, %v", down, err)
	}
	_ = r.sys.Root.StopFuture(owner).Wait()
	r.until("both have ended", func() bool { return len(read[sectionView](r, "sections/links").Rows) == 0 })
}

// longError has a very long text.
type longError struct{}

func (*longError) Error() string { return strings.Repeat("no", 10_000) }
