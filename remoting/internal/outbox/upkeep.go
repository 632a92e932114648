package outbox

// IsUpkeep reports whether messages of a type are those by which Proto.Actor keeps a cluster
// running, and which no application sends. They are repeated, or their fate is the outcome of a
// request.
func IsUpkeep(name string) bool {
	switch name {
	case "actor.Touch", "actor.Touched",
		"cluster.GossipRequest", "cluster.GossipResponse",
		"cluster.ActivationRequest", "cluster.ActivationResponse", "cluster.ActivationTerminated",
		"cluster.NotifyAboutFailingSubscribersRequest", "cluster.NotifyAboutFailingSubscribersResponse":
		return true
	}
	return false
}

// Upkeep is how many of the Records are upkeep.
func (q *Queue) Upkeep() (n int) {
	count := func(p *Packet) { n += p.Upkeep }
	q.common.eachPacket(count)
	for o := range q.own.all {
		o.eachPacket(count)
	}
	return n
}
