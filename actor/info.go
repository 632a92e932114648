package actor

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// IDInfo is Inspect's report on an identifier.
type IDInfo struct {
	PID         *actor.PID
	Owner       *actor.PID // nil: none
	ID          Handle     // 0: not made yet, or never
	Loop        string
	State       State
	InState     time.Duration // since it entered State
	Age         time.Duration
	Local, Peer Addr
	Device      string        // "" without one
	Mailbox     int           // messages waiting for the identifier's actor
	Listener    *ListenerInfo // nil: it has never listened

	// AsOf is the time of the values that follow: now, or when the loop was last asked before an
	// actor blocked it. Zero: it was not asked yet. The values above are always current.
	AsOf time.Time
	// the form of the messages: "messages", "raw", "raw (foreign peer)"; "" before there is a
	// connection
	Wire     string
	Path     Path   // the path of its packets through the network; zero: unknown
	Security string // the cipher that seals a secured connection's messages; "" if there is none
	Mode     SecurityMode
	Identity string // of a secured connection's peer, by its key or certificate
	// the number of times that each side has changed its key since the beginning
	KeyUpdates, PeerKeyUpdates uint64

	Waiting   string // the command whose answer is still to come; "" for none
	Credits   Credits
	Traffic   Traffic
	Memory    int               // bytes of AllocMemory, of its whole Domain
	Delivered uint64            // sends that the peer has consumed
	History   []cmid.Transition // the last transitions, oldest first; not to be changed
}

// Traffic counts the data that a connection has moved since it was made. Reads and writes by the
// peer are not counted: the device executes them alone. Its fields:
//
//	Sent, SentBytes         uint64        // messages and immediate Writes that the device took
//	Received, ReceivedBytes uint64        // messages that were delivered
//	LargeSent               uint64        // of Sent, those that the peer reads
//	LargeReceived           uint64        // of Received, those that this side read
//	Reads, ReadBytes        uint64        // one-sided operations of this side that succeeded
//	Writes, WriteBytes      uint64
//	Atomics                 uint64
//	CreditWaits             uint64        // how often sending had to wait for the peer's credits
//	CreditWait              time.Duration // total time of these waits, with the present one
//	WaitsFor                time.Duration // the present wait; 0: none
type Traffic = datapath.Traffic

// LoopInfo is Loops' report on one loop.
type LoopInfo struct {
	Name        string
	Identifiers int    // living or arriving there; determines the choice of a loop
	Arrived     uint64 // connections that have moved there from other loops' listeners
	// peers of listeners that did not speak the device's protocol: cmid.Channel.Strangers
	Strangers uint64
	eventloop.Stats
	Blocked *Blocked // nil: the loop is not blocked

	// AsOf is the time of the values that follow: now, or when the loop was last asked before it
	// was blocked. Zero: it was not asked yet.
	AsOf    time.Time
	Memory  []PoolInfo
	Devices []DeviceInfo
	LoopTotals
}

// Blocked reports that the present turn of a loop has lasted for more than 100 ms.
type Blocked struct {
	For time.Duration    // since the turn has begun
	By  eventloop.Holder // the present holder of the loop: the actor, if it is one
}

// PoolInfo is memory that a loop has for one purpose, in bytes. Its fields:
//
//	Name       string
//	Limit      int
//	Registered int // registered with devices
//	Used       int // of Registered; the rest is kept for later use
//	Waiting    int // connections that wait for memory
//
// The pools are: "receive", into which messages are received (Limits.ReceiveMemory); "send", from
// which messages are sent eagerly (Limits.SendMemory), which the embedded device does not use;
// "large", from which peers read large messages (Limits.SendMemory); "one-sided", of AllocMemory
// (Limits.Memory).
type PoolInfo = datapath.Pool

// DeviceInfo describes a loop's resources on a device. Its fields:
//
//	Name        string
//	Connections int // those with a queue pair
//	Queues      int // completion queues
//	Held        int // received messages that owners have not released
//	Memory      int // bytes for one-sided operations
type DeviceInfo = datapath.DeviceInfo

// LoopTotals are sums over a loop's identifiers, for callers that need no list of them.
type LoopTotals struct {
	States [states.NumStates]int // identifiers by State
	// Traffic counts the data of all present and past connections of the loop. WaitsFor is the
	// longest present wait.
	Traffic   Traffic
	Waiting   int // connections that wait for credits
	Listeners []ListenerTotals
	// EndedListeners is the sum over those that have ended, without the later fate of their
	// requests.
	EndedListeners ListenerInfo
	Security       SecurityTotals
}

// ListenerTotals counts the requests to one listener by their fate.
type ListenerTotals struct {
	ID    Handle
	Local Addr
	ListenerInfo
}

// loopFigures are the values that only the loop knows.
type loopFigures struct {
	asOf    time.Time
	memory  []PoolInfo
	devices []DeviceInfo
	totals  LoopTotals
}
