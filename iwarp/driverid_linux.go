package iwarp

import (
	"math"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// driverID is one rdma_cm_id.
type driverID struct {
	in          *instance
	h           cmid.Handle
	local, peer cmid.Addr
	binding     *binding // entry in the port table
	// the socket that holds the port, until Listen or Connect takes it over; -1: none
	fd       int
	device   bool
	dead     bool
	child    bool // made for a connection request
	auto     bool // ResolveAddr chose its port
	answered bool // of a child: accepted or rejected
	reuse    bool
	afonly   bool
	hasTOS   bool
	tos      uint8
	lis      *listener
	conn     *conn

	strangers uint64 // strangers of lis, also after it has ended
	starved   uint64 // pauses of lis because it could not accept
}

// Handle returns the identifier's handle.
func (id *driverID) Handle() cmid.Handle { return id.h }

// Flavor returns states.IWARP.
func (id *driverID) Flavor() states.Flavor { return states.IWARP }

// Limits returns the limits of MPA that every peer supports.
func (id *driverID) Limits() cmid.Limits {
	return cmid.Limits{
		ConnectData: maxPrivate, AcceptData: maxPrivate, RejectData: maxPrivate,
		MaxBacklog: maxBacklog, MaxMessage: math.MaxInt32,
	}
}

// Info returns the addresses and the device.
func (id *driverID) Info() cmid.Info {
	i := cmid.Info{Local: id.local, Peer: id.peer}
	if id.device {
		i.Device, i.Port = id.in.cfg.Device, 1
	}
	return i
}

// Path returns the traffic class that was set: TCP does the rest.
func (id *driverID) Path() cmid.Path { return cmid.Path{TrafficClass: id.tos} }

// Device returns the one device if the identifier has a specific address. It is the verbs.Device of
// the loop that has the identifier's queue pair, or of this loop if there is no queue pair.
func (id *driverID) Device() verbs.Device {
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
	id     *driverID
	fd     int
	reg    *eventloop.Registration
	pause  *eventloop.Timer // nil until the first pause
	paused bool
	lost   bool // fd no longer belongs to this listener
}
