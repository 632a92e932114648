package actor

import "github.com/rdmactor/rdmactor/states"

// sumTotals returns the sums over the loop's identifiers. Loop goroutine.
func (l *loop) sumTotals() LoopTotals {
	t := LoopTotals{Traffic: l.past, EndedListeners: l.pastListeners, Security: l.secured}
	for it := range l.ids {
		if it.id == nil {
			continue
		}
		state := it.id.State()
		if it.isEnding() {
			state = states.Destroying
		}
		t.States[state]++
		if c := it.conn; c != nil {
			moved := c.Traffic()
			addTraffic(&t.Traffic, moved)
			t.Security.addKeyUpdates(it)
			if c.Sec.Suite() != 0 && state == states.Connected {
				t.Security.Secured++
			}
			if moved.WaitsFor > 0 {
				t.Waiting++
			}
		}
		if it.listened != nil {
			t.Listeners = append(t.Listeners, ListenerTotals{it.id.Handle(), it.id.Info().Local, it.listenerInfo()})
		}
	}
	return t
}

// keepCounts adds the counts of a connection, or of a listener, to those that outlast its end.
func (l *loop) keepCounts(it *ident) {
	if it.listened != nil && it.id != nil {
		ended := it.listenerInfo()
		ended.Pending = 0
		l.pastListeners.Add(ended)
	}
	if c := it.conn; c != nil {
		moved := c.Traffic()
		moved.WaitsFor = 0
		addTraffic(&l.past, moved)
		l.secured.addKeyUpdates(it)
	}
}

func addTraffic(sum *Traffic, t Traffic) {
	sum.Sent += t.Sent
	sum.SentBytes += t.SentBytes
	sum.Received += t.Received
	sum.ReceivedBytes += t.ReceivedBytes
	sum.LargeSent += t.LargeSent
	sum.LargeReceived += t.LargeReceived
	sum.Reads += t.Reads
	sum.ReadBytes += t.ReadBytes
	sum.Writes += t.Writes
	sum.WriteBytes += t.WriteBytes
	sum.Atomics += t.Atomics
	sum.CreditWaits += t.CreditWaits
	sum.CreditWait += t.CreditWait
	sum.WaitsFor = max(sum.WaitsFor, t.WaitsFor)
}

// addKeyUpdates adds a connection's key updates.
func (t *SecurityTotals) addKeyUpdates(it *ident) {
	if c := it.conn; c != nil {
		own, peers := c.Sec.KeyUpdates()
		t.KeyUpdates += own
		t.PeerKeyUpdates += peers
	}
}
