package ucm

import (
	"net/netip"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// instance is the Driver on one loop: one event channel.
type instance struct {
	drv  *Driver
	loop *eventloop.Loop
	up   cmid.Upcalls
	file *uabi.File
	reg  *eventloop.Registration

	ids      map[cmid.Handle]*driverID
	groups   map[cmid.Handle]*group // memberships by the handle that their events name
	sys      *sysfs
	devices  []*device
	removals *removals // nil: not watched
	gone     []*device // removed, and not closed yet
	backlog  int

	lanes      *lanes
	listeners  int                  // of the identifiers: theirs are others' events
	connecting int                  // connects that wait in the kernel
	busy       map[*driverID]string // commands that wait in the kernel, off the loop
	mail       mailbox              // results of these
	got        uabi.EventResp       // the event that was fetched
	event      cmid.DriverEvent     // as it is delivered
	lost       *loss                // nil: the channel works
	closed     bool
}

// driverID is an identifier.
type driverID struct {
	in *instance
	// the uid that its events name: never 0, because the kernel reports nothing for uid 0, and
	// never used again
	h           cmid.Handle
	kid         uint32 // the kernel's number: any, 0 too, and reused immediately
	datagram    bool   // UD
	phase       phase
	local, peer cmid.Addr
	dst         netip.Addr // the latest one that was to be resolved
	dev         *device    // nil without one
	port        uint8
	qp          verbs.ProviderQP
	offered     cmid.ConnParam // the request's
	// the requested number of outstanding Reads, from connect or accept
	asks uint8
	// minRNRTimer is the peer's wait for a receive, from connect or accept.
	minRNRTimer uint8
	tos         uint8 // as set by the user
	hasTOS      bool
	path        cmid.Path // zero until there is a connection
	groups      []*group
	// the channels it was migrated from: requests that came there brought identifiers of theirs
	past []*uabi.File

	leaving bool // our disconnect has gone out
	left    bool // the peer's has come

	listener  cmid.Handle // the listener of its request; 0: it is no request's
	listening bool        // and counted
	away      *job        // a command is under way off the loop
	lane      *lane       // there
	ending    *ended      // its destruction waits for that, or is under way
	late      []func()    // events wait for that
}

// phase is the progress of a connection. It determines which commands may wait in the kernel.
type phase uint8

const (
	// no connection manager's identifier behind it, or one that has nothing to wait for
	unconnected phase = iota
	half              // asked, or answered
	connected
	removed // the device has gone
)

// ended is a destruction under way.
type ended struct{ reports bool } // Done is due: DestroyID was asked for

// device is one RDMA device on this loop.
type device struct {
	name  string // as it is called now
	ident deviceIdent
	iwarp bool
	// partitions reports that, as far as is known, an InfiniBand port's pkey table decides which
	// nodes reach each other.
	partitions bool
	file       dataFile             // of the data path in sysfs
	gids       gids                 // the content of its tables of GIDs
	verbs      verbs.Device         // never nil
	data       verbs.ProviderDevice // nil: no queue pairs
}

// deviceIdent identifies a device by what does not change when it is renamed. Devices on one
// network interface share a node GUID. The index is unique for as long as the kernel runs.
type deviceIdent struct {
	guid  uint64
	index uint32 // noIndex where the kernel does not report it: before 5.9, or without netlink
}

// isSame reports whether a and b are known to be the same device: by their indices, or else by
// their GUIDs. Several devices may have the GUID 0.
func (a deviceIdent) isSame(b deviceIdent) bool {
	if a.index != noIndex && b.index != noIndex {
		return a.index == b.index
	}
	return a.guid == b.guid && a.guid != 0
}

// group is a multicast membership. Its events name the membership, not the identifier. So it has a
// separate handle as uid, and the kernel numbers memberships separately.
type group struct {
	id       *driverID
	h        cmid.Handle
	kid      uint32
	addr     cmid.Addr
	sendOnly bool
	gid      [16]byte
	lid      uint16
	attached bool
}

// loss is the end of a channel whose commands the kernel refuses. Its file is closed. That frees
// everything that was made through it, which commands could not do. Its owners get DeviceRemoval.
type loss struct {
	in      *instance
	err     error
	closed  bool        // the file: but calls that are under way still use it
	waiting []*driverID // destroyed, and freed when the file is unused
}

// removals learns from the kernel that devices are being removed. rdma_cm reports a removal only
// when the data path is no longer open anywhere, and the data path of a software device does not
// report it at all. But before that the data path's file disappears from sysfs, and the kernel
// announces this to every process.
type removals struct {
	in  *instance
	fd  int
	reg *eventloop.Registration
	buf [8192]byte
}

// dataFile is the data path's file of a device in sysfs: its name, which another device may have
// later, and its inode there, which no other has. The zero dataFile is none.
type dataFile struct {
	name  string
	inode uint64
}

// leaver is a verbs.ProviderDevice that the kernel waits for when it removes the device.
type leaver interface {
	// Removed releases the objects that the kernel waits for. Memory stays until Close.
	Removed()
}

// eventsPerTurn bounds the work for one channel before the loop's other work has its turn.
const eventsPerTurn = 64
