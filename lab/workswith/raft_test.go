package workswith

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/rdmactor/rdmactor/rdmanet"
)

// stream is a raft.StreamLayer.
type stream struct {
	net.Listener
	d *rdmanet.Dialer
}

func (s stream) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.d.DialContext(ctx, "", string(addr))
}

// lines is a raft.FSM.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Apply(e *raft.Log) any {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(e.Data))
	return nil
}

func (l *lines) has(want ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Equal(l.all, want)
}

func (*lines) Snapshot() (raft.FSMSnapshot, error) { return nil, fmt.Errorf("none") }
func (*lines) Restore(r io.ReadCloser) error       { return r.Close() }

// Three members of hashicorp/raft elect a leader, agree on a log, and on another leader when the
// first has gone.
func TestRaft(t *testing.T) {
	var members []*raft.Raft
	var logs []*lines
	var config raft.Configuration
	var transports []*raft.NetworkTransport
	for i := range 3 {
		l, d := listen(t)
		transport := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream: stream{l, d}, MaxPool: 3, Timeout: 10 * time.Second, Logger: hclog.NewNullLogger(),
		})
		transports = append(transports, transport)
		config.Servers = append(config.Servers, raft.Server{ID: raft.ServerID(fmt.Sprint(i)), Address: raft.ServerAddress(l.Addr().String())})
	}
	for i := range 3 {
		cfg := raft.DefaultConfig()
		cfg.LocalID, cfg.Logger = config.Servers[i].ID, hclog.NewNullLogger()
		store := raft.NewInmemStore()
		logs = append(logs, new(lines))
		r, err := raft.NewRaft(cfg, logs[i], store, store, raft.NewDiscardSnapshotStore(), transports[i])
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, r)
		r.BootstrapCluster(config)
	}
	defer func() {
		for i, r := range members {
			if err := r.Shutdown().Error(); err != nil {
				t.Error(err)
			}
			if err := transports[i].Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	// apply has the leader apply line, and returns which member that is.
	apply := func(line string, alive ...int) int {
		for {
			for _, i := range alive {
				if members[i].State() == raft.Leader && members[i].Apply([]byte(line), time.Minute).Error() == nil {
					return i
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	leader := apply("one", 0, 1, 2)
	rest := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == leader })
	for _, i := range rest {
		for !logs[i].has("one") {
			time.Sleep(10 * time.Millisecond)
		}
	}
	if err := members[leader].Shutdown().Error(); err != nil {
		t.Fatal(err)
	}
	apply("two", rest...)
	for _, i := range rest {
		for !logs[i].has("one", "two") {
			time.Sleep(10 * time.Millisecond)
		}
	}
}
