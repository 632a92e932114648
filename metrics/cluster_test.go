package metrics

import "testing"

// The cluster is read at each reading.
func TestCluster(t *testing.T) {
	now := Cluster{Members: 3, Silent: 1}
	s := New(Config{Cluster: func() Cluster { return now }})
	want := func(name string, value float64) {
		t.Helper()
		for _, sample := range s.Read(t.Context()) {
			if sample.Name() == "rdmactor_cluster_"+name {
				if sample.Value != value {
					t.Errorf("%s is %v, want %v", name, sample.Value, value)
				}
				return
			}
		}
		t.Errorf("%s is not read", name)
	}
	want("members", 3)
	want("silent", 1)
	want("missing", 0)
	want("suspended", 0)
	now = Cluster{Members: 2, Missing: 1, Suspended: true, Expelled: true}
	want("members", 2)
	want("silent", 0)
	want("missing", 1)
	want("suspended", 1)
	want("expelled", 1)
}
