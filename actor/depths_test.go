package actor

import (
	"testing"

	"github.com/rdmactor/rdmactor/cmid"
)

// TestRequestWithoutReads: a responder whose request states that the peer makes no Reads, or serves
// none, as soft-iWARP reports it in MPA revision 1, offers nothing and takes no offers: a Read
// would end the connection.
func TestRequestWithoutReads(t *testing.T) {
	for what, p := range map[string]cmid.ConnParam{
		"none": {}, "none of ours": {ResponderResources: 1}, "none of the peer's": {InitiatorDepth: 1},
	} {
		it := &ident{}
		it.setReadLimits(nil, &p)
		if it.served != (p.ResponderResources > 0) || it.reading != (p.InitiatorDepth > 0) {
			t.Errorf("%s: serves %t, reads %t", what, it.served, it.reading)
		}
		it.setReadLimits(&cmid.ConnParam{}, &cmid.ConnParam{ResponderResources: 1, InitiatorDepth: 1})
		if it.served || it.reading {
			t.Errorf("what the owner does not want is used")
		}
	}
}
