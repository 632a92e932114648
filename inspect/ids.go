package inspect

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/states"
)

// idRow is an identifier as shown in a table.
type idRow struct {
	ID        uint64  `json:"id"` // 0: none yet
	PID       string  `json:"pid"`
	State     string  `json:"state"`
	Trouble   string  `json:"trouble"` // why an operator should look at it; "": no reason
	InState   float64 `json:"in_state_seconds"`
	Age       float64 `json:"age_seconds"`
	Peer      string  `json:"peer"`
	Local     string  `json:"local"`
	Device    string  `json:"device"`
	Loop      string  `json:"loop"`
	Owner     string  `json:"owner"`
	Wire      string  `json:"wire"`
	Mode      string  `json:"mode"`     // mode of its security: insecure, PSK
	Security  string  `json:"security"` // cipher of its messages; "": none
	Identity  string  `json:"identity"` // the peer's identity
	Waiting   string  `json:"waiting"`  // command without an answer yet
	Mailbox   int     `json:"mailbox_messages"`
	Queued    int     `json:"queued_messages"`
	InFlight  int     `json:"in_flight_messages"`
	Send      int     `json:"credits_send_messages"`
	Unacked   int     `json:"unacked_messages"`
	Receive   int     `json:"credits_receive_messages"`
	Unfreed   int     `json:"unfreed_messages"`
	Delivered uint64  `json:"delivered_messages"`
	Memory    int     `json:"memory_bytes"`

	KeyUpdates     uint64 `json:"key_updates"` // this side's key updates of a secured connection
	PeerKeyUpdates uint64 `json:"peer_key_updates"`

	Sent          uint64  `json:"sent_messages"`
	SentBytes     uint64  `json:"sent_bytes"`
	Received      uint64  `json:"received_messages"`
	ReceivedBytes uint64  `json:"received_bytes"`
	LargeSent     uint64  `json:"large_sent_messages"`
	LargeReceived uint64  `json:"large_received_messages"`
	Reads         uint64  `json:"reads"` // one-sided operations of this side
	ReadBytes     uint64  `json:"read_bytes"`
	Writes        uint64  `json:"writes"`
	WriteBytes    uint64  `json:"write_bytes"`
	Atomics       uint64  `json:"atomics"`
	CreditWaits   uint64  `json:"credit_waits"`
	CreditWait    float64 `json:"credit_wait_seconds"` // in total, including the present wait
	WaitsFor      float64 `json:"waits_for_seconds"`   // present wait for credits; 0: none

	// Old is the age of the loop's last report on messages and bytes: more than 0 if it is blocked,
	// -1 if it has not reported yet.
	Old float64 `json:"old_seconds"`
}

func (s *snapshot) rowOf(i *rdma.IDInfo) idRow {
	r := idRow{
		ID: uint64(i.ID), PID: i.PID.Id, State: i.State.String(), Trouble: s.troubleOf(i).text, InState: i.InState.Seconds(), Age: i.Age.Seconds(),
		Peer: addrText(i.Peer), Local: addrText(i.Local), Device: truncateText(i.Device), Loop: i.Loop, Wire: i.Wire, Waiting: i.Waiting,
		Mailbox: i.Mailbox, Queued: i.Credits.Queued, InFlight: i.Credits.InFlight, Send: i.Credits.Send, Unacked: i.Credits.Unacked,
		Receive: i.Credits.Receive, Unfreed: i.Credits.Unfreed, Delivered: i.Delivered, Memory: i.Memory,
	}
	t := &i.Traffic
	r.Sent, r.SentBytes, r.Received, r.ReceivedBytes = t.Sent, t.SentBytes, t.Received, t.ReceivedBytes
	r.LargeSent, r.LargeReceived = t.LargeSent, t.LargeReceived
	r.Reads, r.ReadBytes, r.Writes, r.WriteBytes, r.Atomics = t.Reads, t.ReadBytes, t.Writes, t.WriteBytes, t.Atomics
	r.CreditWaits, r.CreditWait, r.WaitsFor = t.CreditWaits, t.CreditWait.Seconds(), t.WaitsFor.Seconds()
	r.Mode, r.Security, r.Identity, r.KeyUpdates, r.PeerKeyUpdates = i.Mode.String(), i.Security, truncateText(i.Identity), i.KeyUpdates, i.PeerKeyUpdates
	r.Old = reportAge(s.taken, i.AsOf)
	if i.Owner != nil {
		r.Owner = truncateText(i.Owner.Id)
	}
	return r
}

// reportAge returns how long before taken a loop has reported; -1: never.
func reportAge(taken, asOf time.Time) float64 {
	if asOf.IsZero() {
		return -1
	}
	return max(taken.Sub(asOf), 0).Seconds()
}

// addrText returns an address as text, "" for the zero address.
func addrText(a rdma.Addr) string {
	if a.IsZero() {
		return ""
	}
	return a.String()
}

// key is a sort key of an identifier.
type key struct {
	number float64
	text   string
}

// sortByTrouble is the field whose key also depends on the loops.
const sortByTrouble = "trouble"

// sortKey returns the key of a field; nil: there is no such field.
func (s *snapshot) sortKey(field string) func(*rdma.IDInfo) key {
	if field == sortByTrouble {
		return s.troubleKey
	}
	return keys[field]
}

// keys are the keys of the other fields.
var keys = map[string]func(*rdma.IDInfo) key{
	"id":                       func(i *rdma.IDInfo) key { return key{number: float64(i.ID)} },
	"pid":                      func(i *rdma.IDInfo) key { return key{text: i.PID.Id} },
	"state":                    func(i *rdma.IDInfo) key { return key{number: float64(i.State)} },
	"in_state_seconds":         func(i *rdma.IDInfo) key { return key{number: i.InState.Seconds()} },
	"age_seconds":              func(i *rdma.IDInfo) key { return key{number: i.Age.Seconds()} },
	"peer":                     func(i *rdma.IDInfo) key { return key{text: addrText(i.Peer)} },
	"local":                    func(i *rdma.IDInfo) key { return key{text: addrText(i.Local)} },
	"device":                   func(i *rdma.IDInfo) key { return key{text: i.Device} },
	"loop":                     func(i *rdma.IDInfo) key { return key{text: i.Loop} },
	"owner":                    func(i *rdma.IDInfo) key { return key{text: i.Owner.GetId()} },
	"wire":                     func(i *rdma.IDInfo) key { return key{text: i.Wire} },
	"mode":                     func(i *rdma.IDInfo) key { return key{number: float64(i.Mode)} },
	"security":                 func(i *rdma.IDInfo) key { return key{text: i.Security} },
	"identity":                 func(i *rdma.IDInfo) key { return key{text: i.Identity} },
	"key_updates":              func(i *rdma.IDInfo) key { return key{number: float64(i.KeyUpdates)} },
	"peer_key_updates":         func(i *rdma.IDInfo) key { return key{number: float64(i.PeerKeyUpdates)} },
	"waiting":                  func(i *rdma.IDInfo) key { return key{text: i.Waiting} },
	"mailbox_messages":         func(i *rdma.IDInfo) key { return key{number: float64(i.Mailbox)} },
	"queued_messages":          func(i *rdma.IDInfo) key { return key{number: float64(i.Credits.Queued)} },
	"in_flight_messages":       func(i *rdma.IDInfo) key { return key{number: float64(i.Credits.InFlight)} },
	"credits_send_messages":    func(i *rdma.IDInfo) key { return key{number: float64(i.Credits.Send)} },
	"unacked_messages":         func(i *rdma.IDInfo) key { return key{number: float64(i.Credits.Unacked)} },
	"credits_receive_messages": func(i *rdma.IDInfo) key { return key{number: float64(i.Credits.Receive)} },
	"unfreed_messages":         func(i *rdma.IDInfo) key { return key{number: float64(i.Credits.Unfreed)} },
	"delivered_messages":       func(i *rdma.IDInfo) key { return key{number: float64(i.Delivered)} },
	"memory_bytes":             func(i *rdma.IDInfo) key { return key{number: float64(i.Memory)} },
	"sent_messages":            func(i *rdma.IDInfo) key { return key{number: float64(i.Traffic.Sent)} },
	"sent_bytes":               func(i *rdma.IDInfo) key { return key{number: float64(i.Traffic.SentBytes)} },
	"received_messages":        func(i *rdma.IDInfo) key { return key{number: float64(i.Traffic.Received)} },
	"received_bytes":           func(i *rdma.IDInfo) key { return key{number: float64(i.Traffic.ReceivedBytes)} },
	"large_sent_messages":      func(i *rdma.IDInfo) key { return key{number: float64(i.Traffic.LargeSent)} },
	"large_received_messages":  func(i *rdma.IDInfo) key { return key{number: float64(i.Traffic.LargeReceived)} },
	"reads":                    func(i *rdma.IDInfo) key { return key{number: float64(i.Traffic.Reads)} },
	"read_bytes":               func(i *rdma.IDInfo) key { return key{number: float64(i.Traffic.ReadBytes)} },
	"writes":                   func(i *rdma.IDInfo) key { return key{number: float64(i.Traffic.Writes)} },
	"write_bytes":              func(i *rdma.IDInfo) key { return key{number: float64(i.Traffic.WriteBytes)} },
	"atomics":                  func(i *rdma.IDInfo) key { return key{number: float64(i.Traffic.Atomics)} },
	"credit_waits":             func(i *rdma.IDInfo) key { return key{number: float64(i.Traffic.CreditWaits)} },
	"credit_wait_seconds":      func(i *rdma.IDInfo) key { return key{number: float64(i.Traffic.CreditWait)} },
	"waits_for_seconds":        func(i *rdma.IDInfo) key { return key{number: float64(i.Traffic.WaitsFor)} },
	"old_seconds":              func(i *rdma.IDInfo) key { return key{number: -float64(i.AsOf.UnixNano())} },
}

// Bounds of a query.
const (
	defaultSize = 50
	maxSize     = 500
	maxText     = 256 // bytes of a filter
)

// query selects identifiers and their order.
type query struct {
	states     map[states.State]bool // nil: all
	peer, text string                // in lower case
	sort       string
	descending bool
	page, size int
}

// parseQuery parses a query. Its error does not repeat the query's words.
func parseQuery(v url.Values) (q query, err error) {
	q = query{peer: strings.ToLower(v.Get("peer")), text: strings.ToLower(v.Get("q")), sort: cmp.Or(v.Get("sort"), "id")}
	if len(q.peer) > maxText || len(q.text) > maxText {
		return q, fmt.Errorf("a filter has at most %d bytes", maxText)
	}
	if (*snapshot)(nil).sortKey(q.sort) == nil {
		return q, fmt.Errorf("there is no such field to sort by")
	}
	switch v.Get("order") {
	case "", "asc":
	case "desc":
		q.descending = true
	default:
		return q, fmt.Errorf("the order is asc or desc")
	}
	if q.states, err = parseStates(v.Get("state")); err != nil {
		return q, err
	}
	q.page, q.size, err = parsePage(v)
	return q, err
}

// parseStates parses names of states, separated by commas.
func parseStates(list string) (map[states.State]bool, error) {
	if list == "" {
		return nil, nil
	}
	if len(list) > 1024 {
		return nil, fmt.Errorf("that are too many states")
	}
	wanted := make(map[states.State]bool)
	for name := range strings.SplitSeq(list, ",") {
		found := false
		for s := range states.State(states.NumStates) {
			if s.String() == name {
				wanted[s], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no such state")
		}
	}
	return wanted, nil
}

// parsePage parses the number of a page, and its number of rows.
func parsePage(v url.Values) (page, size int, err error) {
	if page, err = parseNumber(v.Get("page"), 1); err != nil {
		return 0, 0, fmt.Errorf("a page is a number from 1 on")
	}
	if size, err = parseNumber(v.Get("size"), defaultSize); err != nil {
		return 0, 0, fmt.Errorf("a size is a number from 1 on")
	}
	return page, min(size, maxSize), nil
}

// parseNumber parses a number from 1 on. A number larger than any page is a page beyond the last.
func parseNumber(text string, byDefault int) (int, error) {
	if text == "" {
		return byDefault, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err == nil && n == 0 {
		err = strconv.ErrRange
	}
	return int(n), err
}

// idsView is a page of identifiers.
type idsView struct {
	Taken   string         `json:"taken"`
	Blocked string         `json:"blocked,omitempty"` // the names of loops
	Total   int            `json:"total"`
	Matched int            `json:"matched"`
	Page    int            `json:"page"`
	Pages   int            `json:"pages"`
	Size    int            `json:"size"`
	States  map[string]int `json:"states"` // of all identifiers
	totals
	Rows []idRow `json:"rows"`
}

// totals are sums over the program's connections; the counters include those that have ended.
type totals struct {
	Sent     uint64 `json:"sent_messages"`
	Received uint64 `json:"received_messages"`
	Queued   int    `json:"queued_messages"`
	Unfreed  int    `json:"unfreed_messages"`
}

func totalsOf(s *snapshot) (t totals) {
	for i := range s.loops {
		t.Sent += s.loops[i].Traffic.Sent
		t.Received += s.loops[i].Traffic.Received
	}
	for i := range s.ids {
		t.Queued += s.ids[i].Credits.Queued
		t.Unfreed += s.ids[i].Credits.Unfreed
	}
	return t
}

// selectPage returns the page of s that q selects.
func (q *query) selectPage(s *snapshot) idsView {
	matching := make([]*rdma.IDInfo, 0, len(s.ids))
	for i := range s.ids {
		if q.matchesID(&s.ids[i]) {
			matching = append(matching, &s.ids[i])
		}
	}
	q.sortIDs(s, matching)
	v := idsView{
		Taken: formatTime(s.taken), Blocked: s.blocked, Total: len(s.ids), Matched: len(matching),
		Pages: max((len(matching)+q.size-1)/q.size, 1), Size: q.size, States: s.states, totals: totalsOf(s),
	}
	v.Page = min(q.page, v.Pages)
	first := (v.Page - 1) * q.size
	v.Rows = make([]idRow, 0, q.size)
	for _, i := range matching[first:min(first+q.size, len(matching))] {
		v.Rows = append(v.Rows, s.rowOf(i))
	}
	return v
}

// sortIDs sorts identifiers. They are given by number, and those with the same key stay so.
func (q *query) sortIDs(s *snapshot, ids []*rdma.IDInfo) {
	if q.sort == "id" {
		if q.descending {
			slices.Reverse(ids)
		}
		return
	}
	type keyed struct {
		key
		id *rdma.IDInfo
	}
	list, of := make([]keyed, len(ids)), s.sortKey(q.sort)
	for n, i := range ids {
		list[n] = keyed{of(i), i}
	}
	slices.SortStableFunc(list, func(a, b keyed) int {
		by := cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.text, b.text))
		if q.descending {
			return -by
		}
		return by
	})
	for n := range list {
		ids[n] = list[n].id
	}
}

func (q *query) matchesID(i *rdma.IDInfo) bool {
	if q.states != nil && !q.states[i.State] {
		return false
	}
	if q.peer != "" && !containsFold(addrText(i.Peer), q.peer) {
		return false
	}
	if q.text == "" {
		return true
	}
	return containsFold(i.PID.Id, q.text) || containsFold(i.Owner.GetId(), q.text) || containsFold(i.State.String(), q.text) ||
		containsFold(addrText(i.Peer), q.text) || containsFold(addrText(i.Local), q.text) || containsFold(i.Device, q.text) ||
		containsFold(i.Loop, q.text) || containsFold(i.Wire, q.text) || containsFold(i.Waiting, q.text) ||
		containsFold(i.Identity, q.text) ||
		strconv.FormatUint(uint64(i.ID), 10) == q.text
}

// containsFold reports whether text contains what, which is in lower case.
func containsFold(text, what string) bool { return strings.Contains(strings.ToLower(text), what) }

// idView is one identifier as shown in detail.
type idView struct {
	Taken string `json:"taken"`
	idRow
	pathView
	Meaning string    `json:"meaning"` // of its state
	Kernel  string    `json:"kernel"`  // its state as printed by `rdma resource show cm_id`
	History []sojourn `json:"history"` // oldest first; the last is its present state
}

// pathView is rdma.IDInfo.Path. On iWARP it has at most a traffic class.
type pathView struct {
	GIDIndex      uint8   `json:"gid_index"`
	GIDType       string  `json:"gid_type"` // "": the rest is unknown
	NetDev        string  `json:"gid_netdev"`
	SL            uint8   `json:"service_level"`
	TrafficClass  uint8   `json:"traffic_class"`
	MTU           int     `json:"mtu_bytes"`
	AckTimeout    float64 `json:"ack_timeout_seconds"`
	RetryCount    uint8   `json:"retry_count"`
	RNRRetryCount uint8   `json:"rnr_retry_count"`
	MinRNRTimer   float64 `json:"min_rnr_timer_seconds"`
}

func pathOf(p *rdma.Path) pathView {
	return pathView{
		p.GIDIndex, p.GIDType, p.NetDev, p.SL, p.TrafficClass, p.MTU, p.AckTimeout.Seconds(), p.RetryCount, p.RNRRetryCount,
		p.MinRNRTimer.Seconds(),
	}
}

// sojourn is a stay in a state.
type sojourn struct {
	State string  `json:"state"`
	At    float64 `json:"at_seconds"`  // since the identifier was made
	For   float64 `json:"for_seconds"` // duration of the stay
}

func (s *snapshot) idDetail(i *rdma.IDInfo) idView {
	v := idView{Taken: formatTime(s.taken), idRow: s.rowOf(i), pathView: pathOf(&i.Path), Meaning: i.State.Meaning(), Kernel: i.State.Kernel(), History: []sojourn{}}
	for n, t := range i.History {
		end := i.Age
		if n+1 < len(i.History) {
			end = i.History[n+1].At
		}
		v.History = append(v.History, sojourn{t.State.String(), t.At.Seconds(), max(end-t.At, 0).Seconds()})
	}
	return v
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
