package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/internal/measure"
	"github.com/rdmactor/rdmactor/internal/measure/contest"
)

const echoName = "echo"

type protoService struct {
	system *actor.ActorSystem
	r      *remote.Remote
}

// openProto starts an actor system that other processes can reach. It does not log errors, because
// each end of a connection is one.
func openProto() *protoService {
	s := &protoService{system: contest.NewSystem(slog.LevelError + 1)}
	s.r = remote.NewRemote(s.system, remote.Configure("127.0.0.1", 0))
	s.r.Start()
	return s
}

func (s *protoService) Addr() string { return s.system.Address() }

// Close stops it. If the peer stops at the same moment, the remote panics while it stops, because
// it sends on a channel that it has closed. Then only the gRPC server is left to be stopped.
func (s *protoService) Close() error {
	defer s.system.Shutdown()
	defer func() {
		if recover() != nil {
			s.r.Shutdown(false)
		}
	}()
	s.r.Shutdown(true)
	return nil
}

func serveProto(measure.Entry) (measure.Service, error) {
	s := openProto()
	_, err := s.system.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
			ctx.Respond(m)
		}
	}), echoName)
	return s, err
}

func dialProto(addr string, _ measure.Entry) (contest.Tripper, error) {
	s := openProto()
	pid := actor.NewPID(addr, echoName)
	return contest.Calls{
		CallFunc: func(p, _ []byte) ([]byte, error) {
			const patience = 10 * time.Second
			m, err := s.system.Root.RequestFuture(pid, &wrapperspb.BytesValue{Value: p}, patience).Result()
			if err != nil {
				return nil, err
			}
			got, ok := m.(*wrapperspb.BytesValue)
			if !ok {
				return nil, fmt.Errorf("the answer is a %T", m)
			}
			return got.GetValue(), nil
		},
		CloseFunc: s.Close,
	}, nil
}
