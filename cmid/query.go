package cmid

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// InitQPAttr is rdma_init_qp_attr(3): what ibv_modify_qp(3) needs to bring a queue pair of the
// identifier's to s, for owners who drive it themselves. ErrNotSupported on devices that always
// drive queue pairs themselves.
func (id *ID) InitQPAttr(s verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask, error) {
	op := states.OpInitQPAttrOther
	switch s {
	case verbs.QPReset, verbs.QPSQD, verbs.QPSQE, verbs.QPError:
	case verbs.QPInit:
		op = states.OpInitQPAttrInit
	case verbs.QPRTR, verbs.QPRTS:
		op = states.OpInitQPAttrReady
	default:
		return verbs.QPAttr{}, 0, id.callFailed("init_qp_attr", &refusal{"no such queue pair state", unix.EINVAL})
	}
	if err := id.judgeCall(op, "init_qp_attr"); err != nil {
		return verbs.QPAttr{}, 0, err
	}
	q, ok := id.driver.(QPAttrs)
	if !ok {
		return verbs.QPAttr{}, 0, id.callFailed("init_qp_attr", ErrNotSupported)
	}
	attr, mask, err := q.InitQPAttr(s)
	if err != nil {
		return verbs.QPAttr{}, 0, id.callFailed("init_qp_attr", err)
	}
	return attr, mask, nil
}

// QueryPath gives the path records that the route was resolved to, PathLen bytes each (struct
// ibv_path_data), as SetIBPath takes them; none before. ErrNotSupported where there are none.
func (id *ID) QueryPath() ([]byte, error) {
	r, err := routerOf(id, "query_path")
	if err != nil {
		return nil, err
	}
	paths, err := r.QueryPath()
	if err != nil {
		return nil, id.callFailed("query_path", err)
	}
	return paths, nil
}

// QueryGID gives the addresses as AF_IB addresses: the GIDs, and in the service id the port space
// and the port. ErrNotSupported where there are none.
func (id *ID) QueryGID() (local, peer Addr, err error) {
	r, err := routerOf(id, "query_gid")
	if err != nil {
		return Addr{}, Addr{}, err
	}
	if local, peer, err = r.QueryGID(); err != nil {
		return Addr{}, Addr{}, id.callFailed("query_gid", err)
	}
	return local, peer, nil
}

// routerOf returns the Router for a call, or the call's error.
func routerOf(id *ID, call string) (Router, error) {
	if err := id.judgeCall(states.OpQuery, call); err != nil {
		return nil, err
	}
	if r, ok := id.driver.(Router); ok {
		return r, nil
	}
	return nil, id.callFailed(call, ErrNotSupported)
}
