package pacluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
)

// fakeMember answers as a member, or in whatever way a test wants.
type fakeMember struct {
	*httptest.Server
	answer atomic.Pointer[http.HandlerFunc]
}

func (f *fakeMember) addr() string { return f.Listener.Addr().String() }

// does sets the handler h for its answers.
func (f *fakeMember) does(h http.HandlerFunc) { f.answer.Store(&h) }

// says returns a handler that answers with a text.
func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

// is returns the answer of a member with that id.
func is(id string) http.HandlerFunc {
	return says(fmt.Sprintf(`{"id":%q,"address":"10.0.0.1","port":7471,"kinds":["cart"],"cluster_name":"test"}`, id))
}

// silentFor answers nothing for so long.
func silentFor(d time.Duration, then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
		case <-r.Context().Done():
		}
		then(w, r)
	}
}

func newFakeMember(t *testing.T, h http.HandlerFunc) *fakeMember {
	t.Helper()
	f := &fakeMember{}
	f.does(h)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*f.answer.Load())(w, r) }))
	t.Cleanup(f.Close)
	return f
}

// seen are the views that a provider has published.
type seen struct {
	t  *testing.T
	mu sync.Mutex
	at []string
}

func (s *seen) update(all cluster.Members) {
	var ids []string
	for _, m := range all {
		ids = append(ids, m.Id)
	}
	view := sorted(ids...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.at); n == 0 || s.at[n-1] != view {
		s.at = append(s.at, view)
	}
}

func (s *seen) views() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.at)
}

// want waits until the latest view is that one.
func (s *seen) want(view string) (took time.Duration) {
	s.t.Helper()
	begun := time.Now()
	for time.Since(begun) < patience {
		if v := s.views(); len(v) > 0 && v[len(v)-1] == view {
			return time.Since(begun)
		}
		time.Sleep(time.Millisecond)
	}
	s.t.Fatalf("the views are %.200q, and never %q", s.views(), view)
	return 0
}

// ask starts a provider of a member "me" that asks the hosts.
func ask(t *testing.T, cfg Automanaged, hosts ...*fakeMember) *seen {
	t.Helper()
	var addrs []string
	for _, f := range hosts {
		addrs = append(addrs, f.addr())
	}
	s := &seen{t: t}
	p := newAutomanaged(cfg, addrs)
	p.cluster, p.self, p.update = "test", &cluster.Member{Id: "me"}, s.update
	p.startAsking()
	t.Cleanup(func() {
		if err := p.Shutdown(true); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A member that answers late is one all the time. One that stops answering is dropped after
// Silence, and one whose port is closed immediately.
func TestSilence(t *testing.T) {
	cfg := Automanaged{Refresh: 20 * time.Millisecond, Silence: 2 * time.Second}
	slow, gone := newFakeMember(t, is("slow")), newFakeMember(t, is("gone"))
	s := ask(t, cfg, slow, gone)
	s.want("gone,me,slow")
	slow.does(silentFor(cfg.Silence/2, is("slow")))
	time.Sleep(cfg.Silence / 4) // it is asked
	gone.Close()
	if took := s.want("me,slow"); took > cfg.Silence/2 {
		t.Errorf("that nobody listens takes %v to be found", took)
	}
	time.Sleep(cfg.Silence)
	if got := s.views(); len(got) != 2 {
		t.Errorf("the views are %q", got)
	}
	slow.does(silentFor(time.Hour, is("slow")))
	if took := s.want("me"); took < cfg.Silence/2 {
		t.Errorf("it is given up after %v", took)
	}
	slow.does(is("slow")) // the cluster decides what that means
	s.want("me,slow")
}

// A member is given up when requests have waited for Silence since its last answer. Time between
// two requests does not count.
func TestSilenceIsOfRequests(t *testing.T) {
	const silence, part = 10 * time.Millisecond, time.Millisecond
	p := newAutomanaged(Automanaged{Silence: silence}, []string{"x"})
	m := &cluster.Member{Id: "x"}
	a := asking{p: p, h: p.hosts[0]}
	ask := func(err error) {
		a.cancel = func() {}
		a.recordOutcome(answered{m, err})
	}
	ask(nil)
	a.addSilence(3 * silence) // between two requests
	for range 5 {
		ask(net.ErrClosed)
		for range silence/part - 1 {
			a.addSilence(part)
		}
		if p.hosts[0].member != m {
			t.Fatal("it is given up too early")
		}
		ask(nil)
	}
	ask(net.ErrClosed)
	for range silence / part {
		a.addSilence(part)
	}
	if p.hosts[0].member != nil {
		t.Error("it is not given up")
	}
}

// An answer in the wrong format is ignored, however long it is. A member whose host lies is given
// up, too.
func TestLies(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request) {
		text := strings.Repeat("x", 1<<16)
		for _, err := fmt.Fprint(w, `{"id":"`); err == nil && r.Context().Err() == nil; {
			_, err = fmt.Fprint(w, text)
		}
	}
	other := newFakeMember(t, is("other"))
	lies := map[string]http.HandlerFunc{
		"nothing":         says(""),
		"no JSON":         says("hello"),
		"no object":       says(`[1]`),
		"nobody":          says(`{"cluster_name":"test","port":1}`),
		"no port":         says(`{"cluster_name":"test","id":"x","address":"x"}`),
		"another cluster": says(`{"cluster_name":"chat","id":"x","address":"x","port":1}`),
		"this one":        is("me"),
		"endless":         endless,
		"too long":        is(strings.Repeat("x", mostHealth)),
		"an error": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			is("x")(w, r)
		},
		"a redirection": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+healthPath, http.StatusFound)
		},
		"the end": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	}
	for what, lie := range lies {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			liar, honest := newFakeMember(t, is("x")), newFakeMember(t, is("honest"))
			s := ask(t, Automanaged{Refresh: 20 * time.Millisecond, Silence: 200 * time.Millisecond}, liar, honest)
			s.want("honest,me,x")
			liar.does(lie)
			s.want("honest,me")
			liar.does(is("y")) // another process
			s.want("honest,me,y")
		})
	}
}

// Two hosts of one member, such as one address under two names, are one.
func TestOneMember(t *testing.T) {
	one, two := newFakeMember(t, is("x")), newFakeMember(t, is("x"))
	s := ask(t, Automanaged{Refresh: 20 * time.Millisecond, Silence: time.Second}, one, two)
	s.want("me,x")
	one.Close()
	two.does(is("y"))
	s.want("me,y")
	for _, v := range s.views() {
		if strings.Count(v, "x") > 1 || !strings.Contains(v, "me") {
			t.Errorf("the views are %q", s.views())
		}
	}
}

// Requests are answered, whatever other clients do with their connections.
func TestAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := newAutomanaged(Automanaged{Refresh: time.Second, Silence: time.Second}, nil)
	p.serveHealth(l, []byte("hello"))
	for range 20 { // silent clients
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.Addr().String()+healthPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if err := p.Shutdown(true); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%v, %s", err, resp.Status)
	}
}
