package metrics

// Cluster is what a member of a cluster knows of it. remoting/pacluster's Counts has the same
// fields:
//
//	Cluster: func() metrics.Cluster { return metrics.Cluster(member.Counts()) }
type Cluster struct {
	Members   int  // this process included
	Silent    int  // of them, those that did not answer the latest question
	Missing   int  // of them, those that the provider does not list
	Suspended bool // this process has stopped its grains
	Expelled  bool // this process is no longer a member
}

var perCluster = func() (g group[Cluster]) {
	add := func(name, help string, value func(Cluster) float64) {
		g.add(Definition{"cluster", name, Gauge, None, nil, help}, value)
	}
	add("members", "Members of the cluster, this process included.", func(c Cluster) float64 { return float64(c.Members) })
	add("silent", "Of the members, those that did not answer the latest question.", func(c Cluster) float64 { return float64(c.Silent) })
	add("missing", "Of the members, those that the provider does not list.", func(c Cluster) float64 { return float64(c.Missing) })
	add("suspended", "1 if this process has stopped its grains, because the others may have removed it.", func(c Cluster) float64 { return truth(c.Suspended) })
	add("expelled", "1 if the others have removed this process.", func(c Cluster) float64 { return truth(c.Expelled) })
	return g
}()

// readCluster reads the member's Counts.
func (s *Source) readCluster() []Sample { return perCluster.samples(nil, s.cfg.Cluster()) }
