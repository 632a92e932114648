package datapath

import "testing"

// TestConnSteps holds connState's steps against its diagram: a step that is not in it is a fault of
// the data path's, and ends a test that takes it.
func TestConnSteps(t *testing.T) {
	drawn := map[[2]connState]bool{
		{connConnecting, connOpen}:    true,
		{connConnecting, connAborted}: true,
		{connOpen, connDraining}:      true,
		{connOpen, connOver}:          true,
		{connDraining, connDrained}:   true,
		{connDraining, connOver}:      true,
		{connDrained, connOver}:       true,
		{connOver, connReleased}:      true,
		{connAborted, connReleased}:   true,
	}
	for from := connConnecting; from <= connReleased; from++ {
		for to := connConnecting; to <= connReleased; to++ {
			if got, want := from.leadsTo(to), drawn[[2]connState{from, to}]; got != want {
				t.Errorf("%v leads to %v: %v, the diagram says %v", from, to, got, want)
			}
		}
	}
}
