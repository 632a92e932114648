package iwarp

import (
	"math"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// ident is one rdma_cm_id.
type ident struct {
	in          *instance
	h           cmid.Handle
	local, peer cmid.Addr
	binding     *binding // its place in the table of ports
	// the socket that keeps the port, until Listen or Connect takes it over; -1: none
	fd       int
	device   bool
	dead     bool
	child    bool // of a request
	auto     bool // its port was drawn by ResolveAddr, nobody asked for it
	answered bool // of a child: accepted or rejected
	reuse    bool
	afonly   bool
	hasTOS   bool
	tos      uint8
	lis      *listener
	conn     *conn
}

// Handle is the identifier's.
func (id *ident) Handle() cmid.Handle { return id.h }

// Flavor is states.IWARP.
func (id *ident) Flavor() states.Flavor { return states.IWARP }

// Limits are those of MPA as every peer can carry it.
func (id *ident) Limits() cmid.Limits {
	return cmid.Limits{
		ConnectData: maxPrivate, AcceptData: maxPrivate, RejectData: maxPrivate,
		MaxBacklog: maxBacklog, MaxMessage: math.MaxInt32,
	}
}

// Info gives addresses and device.
func (id *ident) Info() cmid.Info {
	i := cmid.Info{Local: id.local, Peer: id.peer}
	if id.device {
		i.Device, i.Port = id.in.cfg.Device, 1
	}
	return i
}

// Device is the one device, where the identifier has a specific address: as the loop that has its
// queue pair sees it, else this one.
func (id *ident) Device() verbs.Device {
	switch {
	case !id.device:
		return nil
	case id.conn != nil && id.conn.qp != nil:
		return id.conn.qp.dev
	}
	return id.in.dev
}

// listener is a listening socket in the loop.
type listener struct {
	id     *ident
	fd     int
	reg    *eventloop.Registration
	pause  *eventloop.Timer // nil until the first pause
	paused bool
	lost   bool // fd is not ours any more
}
