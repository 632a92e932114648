package pacluster

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/stats"
)

// errShell is why the shell neither accepts nor dials.
var errShell = errors.New("pacluster: messages go over RDMA, not over gRPC")

// shell is Proto.Actor's remote, which a cluster starts in any case. It is idle: remoting answers
// for every address first, so nothing is sent through it. It only listens on a free port of
// loopback. Connections there are refused, because its service reaches every actor. It never
// dials.
type shell struct {
	refused atomic.Int64 // connections that were accepted, and ended before a byte was read
	dialed  atomic.Int64 // attempts to dial, which fail
	streams atomic.Int64 // calls and streams, in both directions
}

// remoteConfig returns the shell's configuration. name is the node's name, and kinds are those that
// remote.SpawnNamed of other members may spawn.
func (s *shell) remoteConfig(name string, kinds map[string]*actor.Props) *remote.Config {
	cfg := remote.Configure("127.0.0.1", 0,
		remote.WithAdvertisedHost(name),
		remote.WithServerOptions(grpc.Creds(noEntry{s}), grpc.StatsHandler(counter{s})),
		remote.WithDialOptions(
			grpc.WithTransportCredentials(noEntry{s}),
			grpc.WithStatsHandler(counter{s}),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
				s.dialed.Add(1)
				return nil, errShell
			}),
		))
	for kind, props := range kinds {
		cfg.Kinds[kind] = props
	}
	return cfg
}

// noEntry are gRPC credentials that fail every handshake, on both sides.
type noEntry struct{ s *shell }

func (n noEntry) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	n.s.refused.Add(1)
	return nil, nil, errShell
}

func (n noEntry) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errShell
}

func (noEntry) Info() credentials.ProtocolInfo { return credentials.ProtocolInfo{} }

func (n noEntry) Clone() credentials.TransportCredentials { return n }

func (noEntry) OverrideServerName(string) error { return nil }

// counter counts the calls over gRPC.
type counter struct{ s *shell }

func (c counter) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	c.s.streams.Add(1)
	return ctx
}

func (counter) HandleRPC(context.Context, stats.RPCStats) {}

func (counter) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (counter) HandleConn(context.Context, stats.ConnStats) {}
