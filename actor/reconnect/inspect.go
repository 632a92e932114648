package reconnect

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/enum"
)

// LinkInfo is the report of Links on a reconnecting actor.
type LinkInfo struct {
	Addr   string // Dial.Addr, or the latest Address; "": it waits for the peer's dials
	State  LinkState
	Since  time.Time // in State
	Failed int       // attempts in a row
	// NextTry is when the pause is over. Zero: it is in another state.
	NextTry time.Time
	// LastErr is why the last generation ended. It stays while there is another one. nil: in order,
	// or none has ended.
	LastErr    error
	Generation uint64 // the number of generations that have begun
	Who        *actor.PID
}

// LinkState is the state of a reconnecting actor.
type LinkState uint8

// The states.
const (
	LinkPausing   LinkState = iota + 1 // after a failure, and before it has started
	LinkWaiting                        // for the peer's dial, because it has no address
	LinkResolving                      // Config.Resolve is being called
	LinkQueueing                       // awaits its turn at the Limiter
	LinkDialling
	LinkAccepting // the peer has dialled
	LinkUp
	LinkEnded // its mailbox is being emptied
)

var linkStates = map[LinkState]string{
	LinkPausing: "pausing", LinkWaiting: "waiting", LinkResolving: "resolving", LinkQueueing: "queueing",
	LinkDialling: "dialling", LinkAccepting: "accepting", LinkUp: "up", LinkEnded: "ended",
}

// String returns the state's name.
func (s LinkState) String() string { return enum.Name(linkStates, s, "state %d") }

// MarshalText returns String's text.
func (s LinkState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Links reports on the reconnecting actors of a runtime that have started and not delivered Closed,
// in the order of their start. Remoting's connections to its peers are among them; rpc's clients
// have no such actor. It waits for no loop: for actors on a blocked loop, and behind a shutdown of
// the runtime, it reports their last known state. Any goroutine may call it. inspect.Rows shows it.
func Links(rt *rdma.Runtime) []LinkInfo {
	all := rosterOf(rt).read()
	infos := make([]LinkInfo, len(all))
	for i, s := range all {
		infos[i] = s.read()
	}
	return infos
}

// enterState begins a state, and publishes it to Links, with the fields that were set before.
// Messages of a connection do not come here.
func (l *link) enterState(s LinkState) {
	if l.state != s {
		l.state, l.since = s, l.local.Now()
	}
	l.publishInfo()
}

// publishInfo updates the state that Links shows.
func (l *link) publishInfo() {
	i := LinkInfo{
		Addr: l.cfg.Dial.Addr, State: l.state, Since: l.since, Failed: l.failed, LastErr: l.lastErr, Generation: l.generation, Who: l.self,
	}
	if l.state == LinkPausing {
		i.NextTry = l.nextTry
	}
	l.status.mu.Lock()
	defer l.status.mu.Unlock()
	l.status.info = i
}

// status is the part of a link that Links shows.
type status struct {
	number uint64 // in the order of starts

	mu   sync.Mutex
	info LinkInfo
}

func (s *status) read() LinkInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

// roster has the links of a runtime by weak pointers. A link's status leads to its actor, and so to
// the runtime: links that could not end because of a shutdown would keep it in memory forever.
type roster struct {
	mu      sync.Mutex
	started uint64
	links   map[weak.Pointer[status]]struct{}
}

// rosters has the roster of each runtime, by weak pointer.
var rosters sync.Map

func rosterOf(rt *rdma.Runtime) *roster {
	key := weak.Make(rt)
	if r, ok := rosters.Load(key); ok {
		return r.(*roster)
	}
	r, loaded := rosters.LoadOrStore(key, &roster{links: make(map[weak.Pointer[status]]struct{})})
	if !loaded {
		runtime.AddCleanup(rt, func(key weak.Pointer[rdma.Runtime]) { rosters.Delete(key) }, key)
	}
	return r.(*roster)
}

func (r *roster) enter(s *status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started++
	s.number = r.started
	r.links[weak.Make(s)] = struct{}{}
}

func (r *roster) leave(s *status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.links, weak.Make(s))
}

// read lists them in the order of their start. Loops that spawn links wait for no more than that.
func (r *roster) read() []*status {
	r.mu.Lock()
	all := make([]*status, 0, len(r.links))
	for weakly := range r.links {
		if s := weakly.Value(); s != nil {
			all = append(all, s)
		} else {
			delete(r.links, weakly)
		}
	}
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b *status) int { return cmp.Compare(a.number, b.number) })
	return all
}
