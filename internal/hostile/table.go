package hostile

import "slices"

// All returns every exchange of the table. The slice belongs to the caller.
func All() []*Exchange {
	var all []*Exchange
	for _, part := range [][]Exchange{
		requests, responders, segmentExchanges(), unusual, checksumExchanges(), messages, terminates, cutExchanges(), silences, floods, tagged, reads, readResponses,
	} {
		for i := range part {
			all = append(all, &part[i])
		}
	}
	return all
}

// Find returns the exchange of that name.
func Find(name string) (*Exchange, bool) {
	for _, x := range All() {
		if x.Name == name {
			return x, true
		}
	}
	return nil, false
}

// Callers returns the exchanges that can be run against any listener. They need neither a victim
// that Reads nor its memory, and they end without a time limit. The slice belongs to the caller.
func Callers() []*Exchange {
	return slices.DeleteFunc(All(), func(x *Exchange) bool {
		return x.Side == Answers || x.Slow || x.Regions || x.Reads > 0
	})
}
