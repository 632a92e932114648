// Package compare joins the identifiers of a program with those of the kernel, and shows which of
// them only one side has. The two tables are read one after the other, so identifiers that change
// in between differ without an error.
package compare

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/kernel"
	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/page"
	"github.com/rdmactor/rdmactor/states"
)

// Who is the side with an identifier.
type Who string

// The values of Who.
const (
	Both    Who = "both"
	Differ  Who = "differ"  // both, in different states
	Program Who = "program" // not the kernel, although it has the device
	Kernel  Who = "kernel"  // not the program: another process's, or a leaked one
	Apart   Who = "apart"   // only the program, as expected: it has no kernel device
)

// Pair is an identifier as its program and the kernel have it.
type Pair struct {
	Who     Who       `json:"who"`
	Program *page.Row `json:"program,omitempty"`
	// a listener at every address has one for each device
	Kernel []kernel.ID `json:"kernel,omitempty"`
}

// place is the key common to both tables.
type place struct{ device, local, peer string }

// Join pairs the rows of a program with the identifiers that the kernel has on those devices:
// indexed by device, local and peer address. Rows come first, in their order.
func Join(rows []page.Row, ids []kernel.ID, devices []string) (pairs []Pair) {
	at := make(map[place][]int)
	for n := range ids {
		i := &ids[n]
		p := place{i.Device, normalizeAddr(i.Local.String()), normalizeAddr(i.Peer.String())}
		at[p] = append(at[p], n)
	}
	taken := make([]bool, len(ids))
	for n := range rows {
		row := &rows[n]
		pair := Pair{Who: Apart, Program: row}
		p := place{row.Device, normalizeAddr(row.Local), normalizeAddr(row.Peer)}
		switch {
		case slices.Contains(devices, row.Device):
			pair.Who = Program
			if found, ok := removeID(at, p, ids, stateOf(row)); ok {
				pair.add(&ids[found], row)
				taken[found] = true
			}
		case row.Device == "" && row.State == states.Listening.String():
			for _, d := range devices { // it listens on each of them
				p.device = d
				if found, ok := removeID(at, p, ids, stateOf(row)); ok {
					pair.add(&ids[found], row)
					taken[found] = true
				}
			}
			if pair.Kernel == nil && len(devices) > 0 {
				pair.Who = Program
			}
		}
		pairs = append(pairs, pair)
	}
	for n := range ids {
		if !taken[n] {
			pairs = append(pairs, Pair{Who: Kernel, Kernel: ids[n : n+1]})
		}
	}
	return pairs
}

// removeID removes one of the identifiers at a place: one in that state if there is one.
func removeID(at map[place][]int, p place, ids []kernel.ID, state string) (n int, ok bool) {
	list := at[p]
	if len(list) == 0 {
		return 0, false
	}
	i := max(slices.IndexFunc(list, func(n int) bool { return ids[n].State == state }), 0)
	n = list[i]
	at[p] = slices.Delete(list, i, i+1)
	return n, true
}

func (p *Pair) add(id *kernel.ID, row *page.Row) {
	if p.Kernel = append(p.Kernel, *id); p.Who != Differ {
		p.Who = Both
	}
	if id.State != stateOf(row) {
		p.Who = Differ
	}
}

// stateOf returns the kernel's name of a row's state, or "" if there is no such state.
func stateOf(row *page.Row) string {
	for s := range states.State(states.NumStates) {
		if s.String() == row.State {
			return s.Kernel()
		}
	}
	return ""
}

// normalizeAddr returns an address in one spelling: without the zone, which one side has as a name
// and the other as a number. A listener's peer in the kernel is 0.0.0.0:0, which becomes "".
func normalizeAddr(text string) string {
	if a, err := netip.ParseAddrPort(text); err == nil {
		if a.Port() == 0 && a.Addr().WithZone("").IsUnspecified() {
			return ""
		}
		return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port()).String()
	}
	return strings.ToLower(text)
}
