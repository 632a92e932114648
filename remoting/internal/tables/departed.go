package tables

import (
	"net/netip"
	"time"

	"github.com/rdmactor/rdmactor/internal/fairshare"
)

// Departed holds the grants of nodes without a link, because their processes may come back and
// answer within AnswerTime. It is bounded in bytes, of which the nodes of one address have as many
// as are left for the others. The roster's mutex guards it. The zero value is empty.
type Departed struct {
	nodes ordered[uint64, Grants] // keyed by node id, roughly in the order of their departure
	bytes fairshare.Shares[netip.Addr]
}

// DepartedBytes bounds the grants of departed nodes. Each node counts as its grants and
// departedBytes.
const (
	DepartedBytes = 64 << 20
	departedBytes = 256
)

func (g *Grants) keptBytes() int { return departedBytes + g.bytes }

// Keep enters a node's grants. It returns false if there is no room for them.
func (d *Departed) Keep(node uint64, g Grants, now time.Time) (ok bool) {
	d.forgetOver(now)
	if !g.peer.known || len(g.of) == 0 || g.peer.isOver(now) {
		return true // nothing to keep
	}
	from, wants := g.peer.from, g.keptBytes()
	if may := d.bytes.Set(from, 0, wants, DepartedBytes); may < wants {
		d.bytes.Add(from, -may)
		return false
	}
	g.last, g.lastIs = "", identity{}
	d.nodes.add(node, g)
	return true
}

// Take removes a node's grants and returns them, for its next link.
func (d *Departed) Take(node uint64) (g Grants) {
	g, ok := d.nodes.remove(node)
	if ok {
		d.bytes.Add(g.peer.from, -g.keptBytes())
	}
	return g
}

// forgetOver removes nodes whose AnswerTime is over.
func (d *Departed) forgetOver(now time.Time) {
	for e := d.nodes.first; e != nil && e.value.peer.isOver(now); e = d.nodes.first {
		d.Take(e.key)
	}
}
