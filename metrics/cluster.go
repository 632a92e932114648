package metrics

// Cluster is a cluster as one of its members knows it. remoting/pacluster's Member.Counts returns
// it.
type Cluster struct {
	Members   int  // all members, this process included
	Silent    int  // members that did not answer the latest question
	Missing   int  // members that the provider does not list
	Suspended bool // whether this process has stopped its grains
	Expelled  bool // whether the other members have removed this process
}

var perCluster = func() (g group[Cluster]) {
	add := func(name, help string, value func(Cluster) float64) {
		g.addMetric(Definition{"cluster", name, Gauge, None, nil, help}, value)
	}
	add("members", "Members of the cluster, this process included.", func(c Cluster) float64 { return float64(c.Members) })
	add("silent", "Members that did not answer the latest question.", func(c Cluster) float64 { return float64(c.Silent) })
	add("missing", "Members that the provider does not list.", func(c Cluster) float64 { return float64(c.Missing) })
	add("suspended", "1 if this process has stopped its grains, because the other members may have removed it.", func(c Cluster) float64 { return boolValue(c.Suspended) })
	add("expelled", "1 if the other members have removed this process.", func(c Cluster) float64 { return boolValue(c.Expelled) })
	return g
}()

// readCluster reads Config.Cluster.
func (s *Source) readCluster() []Sample { return perCluster.appendSamples(nil, s.cfg.Cluster()) }
