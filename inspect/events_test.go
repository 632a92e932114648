package inspect

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
)

// watch gets events until stop is called.
func (r *rig) watch(query string) (next func() (name, data string), stop func()) {
	r.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"events?"+query, nil)
	if err != nil {
		r.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		r.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		cancel()
		return nil, func() {}
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<24)
	next = func() (name, data string) {
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				name = rest
			}
			if rest, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return name, rest
			}
		}
		return "", ""
	}
	return next, func() { cancel(); resp.Body.Close() }
}

// TestEvents: viewers get news of their view, of the same inspection.
func TestEvents(t *testing.T) {
	r := newRig(t, quick, rdma.Config{})
	id := r.connect(r.echo(), 4)
	taken := make(map[string]int)
	for range 2 {
		for _, view := range []string{"ids", "loops", "memory", "listeners", "devices", "id&id=" + id.Id} {
			next, stop := r.watch("view=" + view)
			defer stop()
			name, data := next()
			var v struct{ Taken string }
			if err := json.Unmarshal([]byte(data), &v); err != nil || name != "news" {
				t.Fatalf("%s: %s %s, %v", view, name, data, err)
			}
			taken[v.Taken]++
			if name, again := next(); name != "news" || again == data {
				t.Errorf("%s: the second is %s, the same: %v", view, name, again == data)
			}
		}
	}
	if len(taken) > 12 {
		t.Errorf("%d inspections: %v", len(taken), taken)
	}
}

// TestSharedReading: whatever the number of viewers, a view is read once in an interval, and only
// on request.
func TestSharedReading(t *testing.T) {
	var reads atomic.Int64
	r := newRig(t, Config{Interval: 200 * time.Millisecond, Viewers: 50, Sections: []Section{
		Rows("s", "S", func() []int { reads.Add(1); return []int{1} }),
	}}, rdma.Config{})
	time.Sleep(300 * time.Millisecond)
	if n := reads.Load(); n != 0 {
		t.Errorf("%d readings while nobody looks", n)
	}
	began := time.Now()
	stops := []func(){}
	for range 50 {
		next, stop := r.watch("view=section&name=s")
		stops = append(stops, stop)
		next()
	}
	time.Sleep(time.Second)
	for _, stop := range stops {
		stop()
	}
	r.until("no viewer is left", func() bool { return r.page.viewers.Load() == 0 })
	if n, most := reads.Load(), int64(time.Since(began)/(200*time.Millisecond))+1; n > most || n < 2 {
		t.Errorf("%d readings in %v, want at most %d", n, time.Since(began), most)
	}
	r.until("what the last viewer has begun is over", func() bool {
		f := r.page.sections["s"]
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.done == nil
	})
	n := reads.Load()
	time.Sleep(500 * time.Millisecond)
	if reads.Load() != n {
		t.Error("it still reads when nobody looks any more")
	}
}

// TestViewersAreBounded: one too many is refused, and there is room again when one leaves.
func TestViewersAreBounded(t *testing.T) {
	r := newRig(t, Config{Interval: minInterval, Viewers: 2}, rdma.Config{})
	_, stop1 := r.watch("view=ids")
	_, stop2 := r.watch("view=loops")
	defer stop2()
	if status, h, body := r.get("events?view=ids"); status != http.StatusServiceUnavailable || h.Get("Retry-After") == "" {
		t.Errorf("the third: %d %s", status, body)
	}
	if status, _, _ := r.get("ids"); status != http.StatusOK {
		t.Errorf("a request beside them: %d", status)
	}
	stop1()
	r.until("the first has gone", func() bool {
		next, stop := r.watch("view=ids")
		defer stop()
		return next != nil
	})
}

// TestCloseEndsViewers: their requests end, and no others begin.
func TestCloseEndsViewers(t *testing.T) {
	r := newRig(t, quick, rdma.Config{})
	next, stop := r.watch("view=ids")
	defer stop()
	next()
	r.page.Close()
	for name, _ := next(); name != ""; name, _ = next() {
		continue // news under way
	}
	if status, _, _ := r.get("events?view=ids"); status != http.StatusServiceUnavailable {
		t.Errorf("after Close: %d", status)
	}
}

// TestViewerThatDoesNotRead is dropped, and does not delay others.
func TestViewerThatDoesNotRead(t *testing.T) {
	r := newRig(t, Config{Interval: minInterval, Viewers: 2}, rdma.Config{})
	r.idle(2000)
	conn, err := net.Dial("tcp", strings.Split(r.url, "/")[2])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	next, stop := r.watch("view=ids")
	defer stop()
	var news atomic.Int64
	over := make(chan string, 1)
	go func() { // from before the slow viewer arrives until it has gone
		name, _ := next()
		for ; name == "news"; name, _ = next() {
			news.Add(1)
		}
		over <- name
	}()
	before := news.Load()
	fmt.Fprintf(conn, "GET %sevents?view=ids&size=500 HTTP/1.1\r\nHost: localhost\r\n\r\n", r.page.cfg.Path)
	r.until("it is a viewer", func() bool { return r.page.viewers.Load() == 2 })
	r.until("it is dropped", func() bool { return r.page.viewers.Load() == 1 })
	if n := news.Load() - before; n < 10 {
		t.Errorf("the other got %d times news meanwhile", n)
	}
	stop()
	if name := <-over; name != "" {
		t.Errorf("the other got %q", name)
	}
}

// noDeadlines is a ResponseWriter of a middleware that hides the deadlines.
type noDeadlines struct{ http.ResponseWriter }

// TestNoDeadlines: if a viewer that does not read could not be dropped, viewers are refused.
func TestNoDeadlines(t *testing.T) {
	r := newRig(t, quick, rdma.Config{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.page.cfg.Path+"events?view=ids", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &recorder{header: make(http.Header)}
	r.page.ServeHTTP(noDeadlines{w}, req)
	if w.status != http.StatusNotImplemented || r.page.viewers.Load() != 0 {
		t.Errorf("%d, %d viewers", w.status, r.page.viewers.Load())
	}
}

type recorder struct {
	header http.Header
	status int
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) Write(p []byte) (int, error) { return len(p), nil }
func (w *recorder) WriteHeader(status int)      { w.status = status }

// TestIdentifierGoes: a viewer of an identifier that ends is notified, and the request ends.
func TestIdentifierGoes(t *testing.T) {
	r := newRig(t, quick, rdma.Config{})
	id := r.connect(r.echo(), 0)
	fresh()
	next, stop := r.watch("view=id&id=" + id.Id)
	defer stop()
	if name, data := next(); name != "news" {
		t.Fatalf("%s %s", name, data)
	}
	r.sys.Root.Send(id, &rdma.DestroyID{})
	name, data := next()
	for name == "news" {
		name, data = next()
	}
	if name != "gone" {
		t.Errorf("%s %s", name, data)
	}
	if name, _ := next(); name != "" {
		t.Errorf("after that %q", name)
	}
}

// block makes an actor wait on the first loop, until free is called.
func (r *rig) block() (free func()) {
	r.Helper()
	waits := make(chan struct{})
	pid := r.sys.Root.SpawnPrefix(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(string); ok {
			<-waits
		}
	}, r.rt.OnLoop()), "sleeper")
	r.sys.Root.Send(pid, "block")
	r.until("the loop is reported", func() bool {
		rows := read[loopsView](r, "loops").Rows
		return rows[0].Blocked > 0 && strings.Contains(rows[0].BlockedBy, "sleeper")
	})
	return func() { close(waits) }
}

// TestBlockedLoop: the page goes on, and names the actor that blocks the loop.
func TestBlockedLoop(t *testing.T) {
	r := newRig(t, quick, rdma.Config{Loops: []eventloop.Config{{OnStall: func(eventloop.Stall) {}}}})
	r.connect(r.echo(), 1)
	fresh()
	_ = read[idsView](r, "ids")
	defer r.block()()
	v := read[idsView](r, "ids")
	if v.Blocked == "" || v.Total != 3 || v.Rows[0].Old <= 0 {
		t.Errorf("the identifiers meanwhile: %+v", v)
	}
}

// TestSectionsOfOthers: a section that blocks, panics or ends its goroutine affects only itself.
func TestSectionsOfOthers(t *testing.T) {
	free := make(chan struct{})
	defer close(free)
	var calls, stuck atomic.Int64
	r := newRig(t, Config{Interval: minInterval, Sections: []Section{
		Rows("blocks", "", func() []int { stuck.Add(1); <-free; return nil }),
		Rows("panics", "", func() []int { panic(errors.New("no <b>luck</b>")) }),
		Rows("exits", "", func() []int { runtime.Goexit(); return nil }),
		Rows("later", "", func() []int {
			if calls.Add(1) > 1 {
				panic("now")
			}
			return []int{7}
		}),
		Rows("large", "", func() []int { return make([]int, 5000) }),
	}}, rdma.Config{})
	for name, want := range map[string]string{"panics": "it has panicked: no <b>luck</b>", "exits": "it has ended its goroutine", "blocks": "no answer yet"} {
		if v := read[sectionView](r, "sections/"+name); v.Error != want || len(v.Rows) != 0 {
			t.Errorf("%s: %+v", name, v)
		}
	}
	_ = read[sectionView](r, "sections/blocks")
	if stuck.Load() != 1 {
		t.Errorf("what blocks was called %d times", stuck.Load())
	}
	_ = read[sectionView](r, "sections/later")
	fresh()
	if v := read[sectionView](r, "sections/later"); v.Error != "it has panicked: now" || len(v.Rows) != 1 {
		t.Errorf("after a panic, what was read before: %+v", v)
	}
	if v := read[sectionView](r, "sections/large"); v.Total != 5000 || len(v.Rows) != sectionRows {
		t.Errorf("a large one: %d of %d", len(v.Rows), v.Total)
	}
	if status, _, _ := r.get("sections/nobody"); status != http.StatusNotFound {
		t.Errorf("a section that there is not: %d", status)
	}
}
