package actor

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// IDInfo is what Inspect reports about an identifier.
type IDInfo struct {
	PID         *actor.PID
	Owner       *actor.PID // nil: nobody
	ID          Handle     // 0: not made yet, or never
	Loop        string
	State       State
	InState     time.Duration // since it entered State
	Age         time.Duration
	Local, Peer Addr
	Device      string        // "" without one
	Mailbox     int           // messages waiting for the identifier's actor
	Listener    *ListenerInfo // nil: it has never listened

	// AsOf is when the loop has said what follows: now, or when it was last asked before an actor
	// has blocked it. Zero: it has not said anything yet. What is above is of now in any case.
	AsOf time.Time
	// how messages travel: "messages", "raw", "raw (foreign peer)"; "" before there is a
	// connection
	Wire     string
	Path     Path   // how its packets go through the network; zero where that is not known
	Security string // what a secured connection's messages are sealed with; "" if they are not
	Mode     SecurityMode
	Identity string // of a secured connection: whose key it has
	// how often each side has changed its key since
	KeyUpdates, PeerKeyUpdates uint64

	Waiting   string // the command whose answer is still to come; "" for none
	Credits   Credits
	Traffic   Traffic
	Memory    int               // bytes of AllocMemory, of all its Domain
	Delivered uint64            // sends that the peer has consumed
	History   []cmid.Transition // the last transitions, oldest first; not to be changed
}

// Traffic is what a connection has moved since it was made. What the peer reads and writes by
// itself is not counted: the device does that alone.
type Traffic = datapath.Traffic

// LoopInfo is Loops' report on one loop.
type LoopInfo struct {
	Name        string
	Identifiers int    // that live there, and requests on their way there: what a loop is chosen by
	Arrived     uint64 // connections that have come from other loops' listeners
	// that came to listeners and did not speak the device's protocol: cmid.Channel.Strangers
	Strangers uint64
	eventloop.Stats
	Blocked *Blocked // nil: the loop goes on

	// AsOf is when the loop has said what follows: now, or when it was last asked before it was
	// blocked. Zero: it has not said anything yet.
	AsOf    time.Time
	Memory  []PoolInfo
	Devices []DeviceInfo
	LoopTotals
}

// Blocked says that a loop has been at one thing, or at one turn's things, for more than 100 ms.
type Blocked struct {
	For time.Duration    // since the turn has begun
	By  eventloop.Holder // what has the loop now: the actor, if it is one
}

// PoolInfo is memory that a loop has for one purpose, in bytes. The pools are: "receive", into
// which messages are received (Limits.ReceiveMemory); "send", from which messages are sent at once
// (Limits.SendMemory), which the embedded device needs none of; "large", from which peers read
// large messages (Limits.SendMemory); "one-sided", of AllocMemory (Limits.Memory).
type PoolInfo = datapath.Pool

// DeviceInfo is what a loop has of a device.
type DeviceInfo = datapath.DeviceInfo

// LoopTotals are sums over a loop's identifiers, for those who want no list of them.
type LoopTotals struct {
	States [states.NumStates]int // identifiers by State
	// Traffic is what all connections have moved that there have been on the loop, also those that
	// have ended. WaitsFor is the longest present wait.
	Traffic   Traffic
	Waiting   int // connections that wait for credits
	Listeners []ListenerTotals
	// EndedListeners is the sum over those that have ended, without what became of a request later.
	EndedListeners ListenerInfo
	Security       SecurityTotals
}

// ListenerTotals is what has become of the requests to one listener.
type ListenerTotals struct {
	ID    Handle
	Local Addr
	ListenerInfo
}

// loopFigures is what only the loop knows.
type loopFigures struct {
	asOf    time.Time
	memory  []PoolInfo
	devices []DeviceInfo
	totals  LoopTotals
}
