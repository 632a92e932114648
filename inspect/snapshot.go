package inspect

import (
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/states"
)

// snapshot is the runtime's state, shared by all viewers.
type snapshot struct {
	taken   time.Time
	ids     []rdma.IDInfo // by number
	loops   []rdma.LoopInfo
	states  map[string]int
	blocked string // the names of loops

	troubles map[string]loopTrouble
}

func takeSnapshot(rt *rdma.Runtime) *snapshot {
	s := &snapshot{ids: rt.Inspect(), loops: rt.Loops(), states: make(map[string]int)}
	s.taken = time.Now()
	s.troubles = troublesOf(s.loops)
	var count [states.NumStates]int
	for i := range s.ids {
		count[s.ids[i].State]++
	}
	for state, n := range count {
		if n > 0 {
			s.states[states.State(state).String()] = n
		}
	}
	var blocked []string
	for i := range s.loops {
		if s.loops[i].Blocked != nil {
			blocked = append(blocked, s.loops[i].Name)
		}
	}
	s.blocked = strings.Join(blocked, ", ")
	return s
}

// findID returns the identifier with that number, or with the PID's id; nil: none.
func (s *snapshot) findID(handle uint64, pid string) *rdma.IDInfo {
	at := slices.IndexFunc(s.ids, func(i rdma.IDInfo) bool {
		return handle != 0 && uint64(i.ID) == handle || handle == 0 && i.PID.Id == pid
	})
	if at < 0 {
		return nil
	}
	return &s.ids[at]
}

// loopRow is a loop as shown.
type loopRow struct {
	Name        string  `json:"name"`
	Identifiers int     `json:"identifiers"`
	Busy        float64 `json:"busy_seconds"` // since the loop was made
	LongestTurn float64 `json:"longest_turn_seconds"`
	RecentTurn  float64 `json:"recent_turn_seconds"` // the longest of the last 10 to 20 s
	Turn        float64 `json:"turn_seconds"`        // the present one; 0: the loop is idle
	LongestWait float64 `json:"longest_wait_seconds"`
	Blocked     float64 `json:"blocked_seconds"` // 0: the loop goes on
	BlockedBy   string  `json:"blocked_by"`
	Queued      int     `json:"queued"` // pieces of work
	Arrived     uint64  `json:"arrived_connections"`
	Strangers   uint64  `json:"strangers"`
	Turns       uint64  `json:"turns"`
	Wakeups     uint64  `json:"wakeups"`
	Posts       uint64  `json:"posts"`
	Runs        uint64  `json:"runs"`
	Panics      uint64  `json:"panics"`
	Secured     int     `json:"secured_connections"`
	Handshakes  uint64  `json:"handshakes"` // handshakes of secured connections that have begun
	HandsFailed uint64  `json:"failed_handshakes"`
	Tampered    uint64  `json:"tampered_connections"`
	FDs         int     `json:"fds"`
	Timers      int     `json:"timers"`
}

type loopsView struct {
	Taken string    `json:"taken"`
	Rows  []loopRow `json:"rows"`
}

func loopsOf(s *snapshot) loopsView {
	v := loopsView{Taken: formatTime(s.taken), Rows: []loopRow{}}
	for i := range s.loops {
		l := &s.loops[i]
		r := loopRow{
			Name: l.Name, Identifiers: l.Identifiers, Busy: l.Busy.Seconds(), LongestTurn: l.LongestTurn.Seconds(),
			RecentTurn: l.RecentTurn.Seconds(), Turn: l.Turn.Seconds(), LongestWait: l.LongestWait.Seconds(), Queued: l.Queued,
			Arrived: l.Arrived, Strangers: l.Strangers, Turns: l.Turns, Wakeups: l.Wakeups, Posts: l.Posts, Runs: l.Runs,
			Panics: l.Panics, FDs: l.FDs, Timers: l.Timers,
		}
		sec := &l.Security
		r.Secured, r.Tampered = sec.Secured, sec.Tampered
		r.Handshakes, r.HandsFailed = sec.Dialled.Begun+sec.Answered.Begun, sec.Dialled.AllFailed()+sec.Answered.AllFailed()
		if l.Blocked != nil {
			r.Blocked, r.BlockedBy = l.Blocked.For.Seconds(), truncateText(l.Blocked.By.String())
		}
		v.Rows = append(v.Rows, r)
	}
	return v
}

// memoryRow is a pool of a loop, or of the process.
type memoryRow struct {
	Loop       string  `json:"loop"` // "": the process
	Pool       string  `json:"pool"`
	Used       uint64  `json:"used_bytes"`
	Registered uint64  `json:"registered_bytes"`
	Limit      uint64  `json:"limit_bytes"` // 0: none
	Waiting    int     `json:"waiting_connections"`
	Old        float64 `json:"old_seconds"` // as in idRow
}

type memoryView struct {
	Taken string      `json:"taken"`
	Rows  []memoryRow `json:"rows"`
}

func memoryOf(s *snapshot) memoryView {
	v := memoryView{Taken: formatTime(s.taken), Rows: []memoryRow{}}
	for i := range s.loops {
		l := &s.loops[i]
		for _, m := range l.Memory {
			v.Rows = append(v.Rows, memoryRow{
				l.Name, m.Name, uint64(m.Used), uint64(m.Registered), uint64(m.Limit), m.Waiting, reportAge(s.taken, l.AsOf),
			})
		}
	}
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"}}
	metrics.Read(heap)
	return memoryView{v.Taken, append(v.Rows,
		memoryRow{Pool: "Go's heap, objects", Used: heap[0].Value.Uint64()},
		memoryRow{Pool: "Go's runtime, all", Used: heap[1].Value.Uint64()},
	)}
}

// listenerRow is a listener as shown.
type listenerRow struct {
	ID          uint64  `json:"id"`
	PID         string  `json:"pid"`
	Local       string  `json:"local"`
	Device      string  `json:"device"`
	Loop        string  `json:"loop"`
	Owner       string  `json:"owner"`
	Age         float64 `json:"age_seconds"`
	Connections int     `json:"connections"` // those with its port, and its address if it has one
	Requests    uint64  `json:"requests"`    // all connection requests
	Pending     int     `json:"pending"`     // requests without an answer yet
	Accepted    uint64  `json:"accepted"`
	Rejected    uint64  `json:"rejected"`
	TimedOut    uint64  `json:"timed_out"`
	Dropped     uint64  `json:"dropped"` // requests that ended before they were answered
	Limits      uint64  `json:"refused_limits"`
	NoMemory    uint64  `json:"refused_memory"`
	Foreign     uint64  `json:"refused_foreign"`
	Closing     uint64  `json:"refused_closing"`
	Failed      uint64  `json:"refused_failed"`
	Rate        uint64  `json:"refused_rate"`
	OfIdentity  uint64  `json:"refused_identity"`
	NoIdentity  uint64  `json:"refused_unauthenticated"`
	Strangers   uint64  `json:"strangers"`
	Starved     uint64  `json:"starved"`
}

type listenersView struct {
	Taken string        `json:"taken"`
	Rows  []listenerRow `json:"rows"`
}

func listenersOf(s *snapshot) listenersView {
	v := listenersView{Taken: formatTime(s.taken), Rows: []listenerRow{}}
	type at struct {
		addr string
		port uint16
	}
	connections := make(map[at]int)
	for i := range s.ids {
		if id := &s.ids[i]; id.State != states.Listening && !id.Local.IsZero() {
			for _, where := range []at{{"", id.Local.Port()}, {addrText(id.Local), id.Local.Port()}} {
				connections[where]++
			}
		}
	}
	for i := range s.ids {
		id := &s.ids[i]
		if id.State != states.Listening {
			continue
		}
		where := at{addrText(id.Local), id.Local.Port()}
		if id.Local.IsWildcard() {
			where.addr = ""
		}
		v.Rows = append(v.Rows, s.listenerOf(id, connections[where]))
	}
	return v
}

func (s *snapshot) listenerOf(id *rdma.IDInfo, connections int) listenerRow {
	r := s.rowOf(id)
	l := listenerRow{
		ID: r.ID, PID: r.PID, Local: r.Local, Device: r.Device, Loop: r.Loop, Owner: r.Owner, Age: r.Age, Connections: connections,
	}
	if i := id.Listener; i != nil {
		l.Requests, l.Pending, l.Accepted, l.Rejected, l.TimedOut, l.Dropped = i.Requests, i.Pending, i.Accepted, i.Rejected, i.TimedOut, i.Dropped
		f := i.Refused
		l.Limits, l.NoMemory, l.Foreign, l.Closing, l.Failed, l.Strangers = f.Limits, f.Memory, f.Foreign, f.Closing, f.Failed, i.Strangers
		l.Rate, l.OfIdentity, l.Starved = f.Rate, f.Identity, i.Starved
		l.NoIdentity = f.Unauthenticated
	}
	return l
}

// deviceRow is a device as shown.
type deviceRow struct {
	Name        string `json:"name"` // "": identifiers without one
	Identifiers int    `json:"identifiers"`
	Listening   int    `json:"listening"`
	Connected   int    `json:"connected"`
	Memory      int    `json:"memory_bytes"` // AllocMemory's
	QueuePairs  int    `json:"queue_pairs"`
	Queues      int    `json:"completion_queues"`
	Retained    int    `json:"retained_messages"` // messages that owners retain
}

type devicesView struct {
	Taken string      `json:"taken"`
	Rows  []deviceRow `json:"rows"`
}

func devicesOf(s *snapshot) devicesView {
	v := devicesView{Taken: formatTime(s.taken), Rows: []deviceRow{}}
	for i := range s.ids {
		id := &s.ids[i]
		r := v.findOrAddRow(id.Device)
		r.Identifiers++
		switch id.State {
		case states.Listening:
			r.Listening++
		case states.Connected:
			r.Connected++
		}
	}
	for i := range s.loops {
		for _, d := range s.loops[i].Devices {
			r := v.findOrAddRow(d.Name)
			r.QueuePairs += d.Connections
			r.Queues += d.Queues
			r.Retained += d.Held
			r.Memory += d.Memory
		}
	}
	slices.SortFunc(v.Rows, func(a, b deviceRow) int { return strings.Compare(a.Name, b.Name) })
	return v
}

// findOrAddRow returns the row of a device.
func (v *devicesView) findOrAddRow(name string) *deviceRow {
	name = truncateText(name)
	at := slices.IndexFunc(v.Rows, func(r deviceRow) bool { return r.Name == name })
	if at < 0 {
		at = len(v.Rows)
		v.Rows = append(v.Rows, deviceRow{Name: name})
	}
	return &v.Rows[at]
}

// overview is the page's content for a program other than a browser.
type overview struct {
	Taken      string         `json:"taken"`
	Go         string         `json:"go"`
	Goroutines int            `json:"goroutines"`
	Interval   float64        `json:"interval_seconds"`
	Actions    bool           `json:"actions"`
	Viewers    int            `json:"viewers"`
	Total      int            `json:"total"`
	Blocked    string         `json:"blocked,omitempty"` // loops
	States     map[string]int `json:"states"`
	Loops      []loopRow      `json:"loops"`
	Memory     []memoryRow    `json:"memory"`
	Listeners  []listenerRow  `json:"listeners"`
	Devices    []deviceRow    `json:"devices"`
	Sections   []sectionTitle `json:"sections"`
}

func (p *Page) overviewOf(s *snapshot) overview {
	return overview{
		Taken: formatTime(s.taken), Go: runtime.Version(), Goroutines: runtime.NumGoroutine(), Interval: p.cfg.Interval.Seconds(),
		Actions: p.cfg.Actions != nil, Viewers: int(p.viewers.Load()), Total: len(s.ids), Blocked: s.blocked, States: s.states,
		Loops: loopsOf(s).Rows, Memory: memoryOf(s).Rows, Listeners: listenersOf(s).Rows, Devices: devicesOf(s).Rows,
		Sections: p.titles,
	}
}
