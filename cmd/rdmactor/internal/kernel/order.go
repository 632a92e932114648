package kernel

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// Fields are the names by which Order sorts.
const Fields = "ifname, port, cm-idn, lqpn, qp-type, state, ps, pid, comm, src-addr, dst-addr"

// Order sorts identifiers by a field.
func Order(ids []ID, field string, descending bool) error {
	by := orders[field]
	if by == nil {
		return errors.New("there is no such field")
	}
	slices.SortStableFunc(ids, func(a, b ID) int {
		if descending {
			a, b = b, a
		}
		return by(&a, &b)
	})
	return nil
}

var orders = map[string]func(a, b *ID) int{
	"ifname":   func(a, b *ID) int { return cmp.Or(strings.Compare(a.Device, b.Device), cmp.Compare(a.CMIDN, b.CMIDN)) },
	"port":     func(a, b *ID) int { return cmp.Compare(a.Port, b.Port) },
	"cm-idn":   func(a, b *ID) int { return cmp.Compare(a.CMIDN, b.CMIDN) },
	"lqpn":     func(a, b *ID) int { return cmp.Compare(a.LQPN, b.LQPN) },
	"qp-type":  func(a, b *ID) int { return strings.Compare(a.Type, b.Type) },
	"state":    func(a, b *ID) int { return strings.Compare(a.State, b.State) },
	"ps":       func(a, b *ID) int { return strings.Compare(a.PS, b.PS) },
	"pid":      func(a, b *ID) int { return cmp.Or(cmp.Compare(a.Process, b.Process), cmp.Compare(a.PID, b.PID)) },
	"comm":     func(a, b *ID) int { return strings.Compare(a.Command, b.Command) },
	"src-addr": func(a, b *ID) int { return a.Local.compare(b.Local) },
	"dst-addr": func(a, b *ID) int { return a.Peer.compare(b.Peer) },
}

func (a Addr) compare(b Addr) int {
	return cmp.Or(a.Compare(b.AddrPort), cmp.Compare(a.SID, b.SID))
}

// Has reports whether one of the identifier's texts contains what, ignoring case.
func (i *ID) Has(what string) bool {
	what = strings.ToLower(what)
	for _, text := range []string{i.Device, i.Type, i.State, i.PS, i.Command, i.Local.String(), i.Peer.String()} {
		if strings.Contains(strings.ToLower(text), what) {
			return true
		}
	}
	return false
}
