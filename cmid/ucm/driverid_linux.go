package ucm

import (
	"encoding/binary"
	"math"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

var (
	_ cmid.QPAttrs = (*driverID)(nil)
	_ cmid.Router  = (*driverID)(nil)
	_ cmid.Pather  = (*driverID)(nil)
)

// Handle returns the handle that the identifier's events name.
func (id *driverID) Handle() cmid.Handle { return id.h }

// Flavor is the device's; 0 without one.
func (id *driverID) Flavor() states.Flavor {
	if id.isIWARP() {
		return states.IWARP
	}
	return 0
}

// Limits are those of the device.
func (id *driverID) Limits() cmid.Limits {
	lim := cmid.Limits{MaxBacklog: id.in.backlog}
	if id.dev == nil {
		return lim
	}
	lim.MaxMessage = int(min(id.dev.verbs.Attr().MaxMessage, math.MaxInt32))
	switch {
	case id.dev.iwarp:
		lim.ConnectData, lim.AcceptData, lim.RejectData =
			uabi.PrivateDataMaxIWARPSIWConnect, uabi.PrivateDataMaxIWARPSIWAccept, uabi.PrivateDataMaxIWARPSIWReject
		return lim
	case id.datagram:
		lim.ConnectData, lim.AcceptData, lim.RejectData =
			uabi.PrivateDataMaxIBUDConnectIP, uabi.PrivateDataMaxIBUDAccept, uabi.PrivateDataMaxIBUDReject
	default:
		lim.ConnectData, lim.AcceptData, lim.RejectData =
			uabi.PrivateDataMaxIBRCConnectIP, uabi.PrivateDataMaxIBRCAccept, uabi.PrivateDataMaxIBReject
	}
	lim.Padded = true
	if id.local.IB != nil { // no header of rdma_cm's before the data
		lim.ConnectData += uabi.PrivateDataMaxIBRCConnectAFIB - uabi.PrivateDataMaxIBRCConnectIP
	}
	return lim
}

// Info gives addresses and device.
func (id *driverID) Info() cmid.Info {
	i := cmid.Info{Local: id.local, Peer: id.peer}
	if id.dev != nil {
		i.Device, i.Port = id.dev.name, id.port
	}
	return i
}

// Path returns the setup of the queue pair, and the GID's entry in the device's table.
func (id *driverID) Path() cmid.Path {
	p := id.path
	if p != (cmid.Path{}) {
		a := id.dev.lookUpGID(id.in.sys, id.in.loop.Now(), place{id.port, p.GIDIndex})
		p.GIDType, p.NetDev = a.kind, a.netdev
	}
	return p
}

// Device is the device that the identifier is attached to.
func (id *driverID) Device() verbs.Device {
	if id.dev == nil {
		return nil
	}
	return id.dev.verbs
}

func (id *driverID) isIWARP() bool { return id.dev != nil && id.dev.iwarp }

// QueryPath gives the path records.
func (id *driverID) QueryPath() ([]byte, error) {
	records, err := id.in.file.QueryPath(id.kid)
	if err != nil {
		return nil, err
	}
	var paths []byte
	for i := range records {
		paths = binary.NativeEndian.AppendUint32(paths, records[i].Flags)
		paths = append(paths, 0, 0, 0, 0)
		paths = append(paths, records[i].PathRec[:]...)
	}
	return paths, nil
}

// QueryGID gives the addresses as AF_IB addresses.
func (id *driverID) QueryGID() (local, peer cmid.Addr, err error) {
	r, err := id.in.file.QueryGID(id.kid)
	if err != nil {
		return cmid.Addr{}, cmid.Addr{}, err
	}
	return addrOf(&r.SrcAddr), addrOf(&r.DstAddr), nil
}
