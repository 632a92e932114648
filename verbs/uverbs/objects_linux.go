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
	name string // as it was called when it was opened
	file string // its name in sysClass
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

	armed    int                // queues of the kernel's that will report a completion
	dirty    []*queuePair       // have sends that were not announced to the kernel
	due      []*completionQueue // to settle at the end of the turn: notify the owner, or arm
	low      []*sharedQueue     // OnLimit is to be called
	spare    []*queuePair
	spareDue []*completionQueue
	deferred bool  // Run will come at the end of the turn
	lost     error // why the device is lost; nil: it is not
	closed   bool
	back     bool // hw is closed
}

// domain is a verbs.PD.
type domain struct {
	dev    *device
	handle hca.Handle
	users  int // regions, queue pairs, shared receive queues
	mrs    map[*verbs.MR]region
	gone   bool
}

// region is a device's data for a verbs.MR.
type region struct {
	handle hca.Handle
	mem    []byte // whole pages
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
	taken    cqe                 // from the kernel's queue
	ready    ring.Ring[verbs.WC] // completions taken from the kernel's queues, or made here
	notified bool                // the owner was notified, and has not polled until 0 since
	// notify is running: see nothingBehind
	notifying bool
	// the owner is notified even if there is no solicited completion
	loud  bool
	quiet bool // only solicited completions notify
	due   bool // in device.due
	users int  // queues of queue pairs that complete here
	gone  bool
}

// cqPart is a completion queue of the kernel's.
type cqPart struct {
	q       *completionQueue
	handle  hca.Handle
	event   uint64 // the handle in events
	ring    cqRing
	room    int                  // completions that no outstanding work request may need
	armed   bool                 // the kernel will report the next completion, or
	quietly bool                 // only the next solicited one
	shared  map[*sharedQueue]int // queue pairs whose receives come from there
}

// sharedQueue is a verbs.SRQ.
type sharedQueue struct {
	dev    *device
	pd     *domain
	attr   verbs.SRQInitAttr
	handle hca.Handle
	event  uint64 // the handle in events
	ring   recvRing
	slots  []slot // indexed by cookie
	free   []uint32
	limit  int  // OnLimit is called when fewer receives are posted
	low    bool // OnLimit is due
	early  bool // the limit was reached by a receive whose completion has not come
	users  int
	gone   bool // its memory was unmapped, by Close or because the device was removed
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
	event          uint64 // the handle in events
	attr           verbs.QPInitAttr
	pd             *domain
	sendCQ, recvCQ *completionQueue
	sendPart       *cqPart
	recvPart       *cqPart
	srq            *sharedQueue

	sq      sendRing
	rq      recvRing // nil with a shared queue
	sends   sends
	backlog backlog // siw only
	recvs   recvs
	list    []place // of the request being posted
	state   verbs.QPState
	reads   bool // the peer serves Reads, as far as is known
	dirty   bool // has sends that were not announced to the kernel
	awaits  bool // they are announced later,
	refused uint // after so many times
	gone    bool
	changes int                 // number in progress
	early   ring.Ring[verbs.WC] // receives that completed during a change
	leaving *leaving            // non-nil while its destruction is under way
	groups  []group             // the multicast groups that it is attached to
	onEvent func(verbs.QPEvent)
}

// leaving is the destruction of a queue pair that is under way.
type leaving struct {
	quiet uint64        // the device's progress when the change began
	back  chan struct{} // closed when Wait has returned
	err   error         // the result of the change
}

// closer unmaps memory.
type closer interface{ release() error }
