package ucm

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/uabi"
	"github.com/rdmactor/rdmactor/verbs"
)

var (
	_ cmid.QPAttrs = (*ident)(nil)
	_ cmid.Router  = (*ident)(nil)
)

// InitQPAttr is rdma_init_qp_attr(3).
func (id *ident) InitQPAttr(s verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask, error) {
	raw, err := id.in.file.InitQPAttr(id.kid, uint32(s))
	if err != nil {
		return verbs.QPAttr{}, 0, err
	}
	attr, mask := qpAttr(&raw)
	return attr, mask, nil
}

// QueryPath gives the path records.
func (id *ident) QueryPath() ([]byte, error) {
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
func (id *ident) QueryGID() (local, peer cmid.Addr, err error) {
	r, err := id.in.file.QueryGID(id.kid)
	if err != nil {
		return cmid.Addr{}, cmid.Addr{}, err
	}
	return addrOf(&r.SrcAddr), addrOf(&r.DstAddr), nil
}

// resolveService is rdma_resolve_addrinfo(3) with RAI_SA.
func (id *ident) resolveService(c *cmid.ResolveIBService) error {
	cmd := uabi.ResolveIBService{ID: id.kid}
	if len(c.Name) >= len(cmd.Ibs.ServiceName) {
		return unix.EINVAL
	}
	const byID, byName = 1, 2 // RDMA_USER_CM_IB_SERVICE_FLAG_ID, _NAME
	if c.Name != "" {
		cmd.Ibs.Flags = byName
		copy(cmd.Ibs.ServiceName[:], c.Name)
	} else {
		cmd.Ibs.Flags = byID
		cmd.Ibs.ServiceID = c.ServiceID
	}
	return id.in.file.ResolveIBService(&cmd)
}
