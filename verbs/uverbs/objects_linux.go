package uverbs

import (
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/verbs"
)

// device is an open device on one loop.
type device struct {
	loop *eventloop.Loop
	name string // name at the time of opening
	file string // name in sysClass
	hw   hca.Adapter
	siw  bool // soft-iWARP, whose Reads need care
	attr verbs.DeviceAttr
	caps hca.Caps
	pd   *domain

	channels          hca.Channels
	asyncReg, compReg *eventloop.Registration

	// indexed by the handle in events: *cqPart, *queuePair, *sharedQueue
	handles    map[uint64]any
	lastHandle uint64
	onEvent    func(verbs.DeviceEvent, int) // nil: not reported
	gids       map[[16]byte]uint8
	qps        map[uint32]*queuePair
	domains    map[*domain]struct{}
	cqs        map[*completionQueue]struct{}

	armed    int                // number of the kernel's queues that will report a completion
	dirty    []*queuePair       // queue pairs with sends that were not announced
	due      []*completionQueue // queues to settle at the end of the turn: notify the owner, or arm
	low      []*sharedQueue     // queues whose OnLimit is due
	spare    []*queuePair
	spareDue []*completionQueue
	deferred bool  // Run is deferred to the end of the turn
	lost     error // why the device is lost; nil: not lost
	closed   bool
	back     bool // hw is closed
}

// domain is a verbs.PD.
type domain struct {
	dev    *device
	handle hca.Handle
	users  int // number of regions, queue pairs and shared receive queues
	mrs    map[*verbs.MR]region
	gone   bool
}

// region is a device's data for a verbs.MR.
type region struct {
	handle hca.Handle
	mem    []byte // mapped memory, whole pages
}

// addressHandle is a verbs.AH.
type addressHandle struct {
	hca.AH
	pd   *domain
	gone bool
}

// completionQueue is a verbs.CQ made of one or more completion queues of the kernel. If the
// completions of a new queue pair might not fit into the existing ones, another one is created. So
// a queue never overflows, whatever size its owner asked for.
type completionQueue struct {
	dev    *device
	notify func()
	parts  []*cqPart
	// the part to look into first. It changes after every Poll that fills its argument, so that no
	// part has to wait for a busy one
	next     int
	taken    cqe                 // last completion taken from the kernel's queue
	ready    ring.Ring[verbs.WC] // completions taken from the kernel's queues, or made here
	notified bool                // the owner was notified, and has not polled 0 since
	// notify is running: see nothingBehind
	notifying bool
	// the owner is notified even if there is no solicited completion
	loud  bool
	quiet bool // only solicited completions notify
	due   bool // listed in device.due
	users int  // number of queues that complete here
	gone  bool
}

// cqPart is a completion queue of the kernel's.
type cqPart struct {
	q       *completionQueue
	handle  hca.Handle
	event   uint64 // handle in events
	ring    cqRing
	room    int                  // places not reserved for queue pairs
	armed   bool                 // the kernel will report the next completion
	quietly bool                 // the kernel will report the next solicited completion only
	shared  map[*sharedQueue]int // number of queue pairs whose receives come from a shared queue
}

// sharedQueue is a verbs.SRQ.
type sharedQueue struct {
	dev    *device
	pd     *domain
	attr   verbs.SRQInitAttr
	handle hca.Handle
	event  uint64 // handle in events
	ring   recvRing
	slots  []slot // indexed by cookie
	free   []uint32
	limit  int  // OnLimit is called when fewer receives are posted; 0: none
	low    bool // OnLimit is due
	early  bool // the limit was reached by a receive whose completion is not taken yet
	users  int
	gone   bool // memory was unmapped, by Close or because the device was removed
	closed bool
}

// slot is a place for a receive that the kernel has.
type slot struct {
	recv
	used bool
}

// queuePair is a verbs.ProviderQP.
type queuePair struct {
	dev            *device
	typ            verbs.QPType
	handle         hca.Handle
	num            uint32
	event          uint64 // handle in events
	attr           verbs.QPInitAttr
	pd             *domain
	sendCQ, recvCQ *completionQueue
	sendPart       *cqPart
	recvPart       *cqPart
	srq            *sharedQueue

	sq      sendRing
	rq      recvRing // nil with a shared receive queue
	sends   sends
	backlog backlog // used with siw only
	recvs   recvs
	list    []place // elements of the request being posted
	state   verbs.QPState
	reads   bool // the peer serves Reads, as far as known
	dirty   bool // there are sends that were not announced
	awaits  bool // the announcement is repeated later
	refused uint // refused announcements in a row
	gone    bool
	changes int                 // number in progress
	early   ring.Ring[verbs.WC] // receives that completed during a change
	leaving *leaving            // set while the queue pair is being destroyed
	groups  []group             // multicast groups that the queue pair is attached to
	onEvent func(verbs.QPEvent)
}

// leaving is the destruction of a queue pair that is under way.
type leaving struct {
	quiet uint64        // the device's progress when the change began
	back  chan struct{} // closed when Wait returned
	err   error         // the result of the change
}

// closer unmaps memory.
type closer interface{ release() error }
