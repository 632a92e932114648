package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/examples/chat/console"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/pacluster"
)

// leaveCluster bounds how long a member takes to leave in order.
const leaveCluster = 5 * time.Second

// session is this process as one member of the cluster. If the others expel the member, because it
// was suspended, another session follows.
type session struct {
	system *actor.ActorSystem
	rt     *rdma.Runtime
	member *pacluster.Member
	user   *actor.PID
	ended  chan error
	// names of members that have other keys
	strange chan string
}

// begin joins the cluster.
func begin(ctx context.Context, s *settings, log *slog.Logger) (*session, error) {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }))
	rt, err := rdma.Open(system, rdma.Config{Device: s.choice.Driver(), Logger: log, Security: s.security})
	if err != nil {
		system.Shutdown()
		return nil, err
	}
	se := &session{system: system, rt: rt, ended: make(chan error, 1), strange: make(chan string, 8)}
	system.EventStream.Subscribe(se.observe)
	provider, err := pacluster.Automanaged{Listen: health(s.name), Members: s.health(), Refresh: refresh, Silence: silence}.Provider()
	if err == nil {
		se.member, err = pacluster.Start(ctx, system, rt, pacluster.Config{
			Cluster:  "chat",
			Provider: provider,
			Kinds: []*cluster.Kind{
				cluster.NewKind(hallKind, actor.PropsFromProducer(newHall, rt.OnLoop())),
				cluster.NewKind(directoryKind, actor.PropsFromProducer(newDirectory, rt.OnLoop())),
			},
			Remoting: remoting.Config{
				Name: s.name, Codec: messages(),
				Expose: remoting.Expose{Reach: []string{userName}, Watch: []string{userName}},
			},
		})
	}
	if err != nil {
		return nil, errors.Join(err, se.end())
	}
	return se, nil
}

// observe records members that refuse this one, or are refused by it, because of their keys. It
// must not wait.
func (s *session) observe(ev any) {
	no, ok := ev.(*remoting.NotAdmitted)
	if !ok {
		return
	}
	if _, keys := errors.AsType[*rdma.HandshakeError](no.Err); keys {
		select {
		case s.strange <- no.Peer.Name:
		default: // enough are queued
		}
	}
}

// talk runs the person's actor until they leave, and then returns a nil *carried, or until this
// member is expelled.
func (s *session) talk(ctx context.Context, con console.Console, in *console.Input, lines <-chan any, who *carried) (*carried, error) {
	u := newUser(who, con, in, s.ended)
	u.find = func(kind, id string) *actor.PID { return s.member.Cluster.Get(id, kind) }
	pid, err := s.system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return u }, s.rt.OffLoop()), userName)
	if err != nil {
		return nil, err
	}
	s.user = pid
	done := ctx.Done()
	var stuck <-chan time.Time
	for {
		select {
		case m := <-lines:
			s.system.Root.Send(pid, m)
		case name := <-s.strange:
			con.Status(name + " is there, and cannot be talked to: do all members have the same --key, or certificates of the same --tls-ca?")
		case err := <-s.ended:
			return nil, err
		case <-done:
			done, stuck = nil, time.After(leaveFor+2*byeFor)
			if err := con.Close(); err != nil { // makes Ctrl-C a signal again
				return nil, err
			}
			s.system.Root.Send(pid, &quit{now: true})
		case <-stuck:
			return nil, errors.New("gave up saying goodbye: is standard output stuck?")
		case <-s.member.Expelled():
			return s.carry(who)
		}
	}
}

// carry takes the state for the next session from the person's actor.
func (s *session) carry(who *carried) (*carried, error) {
	res, err := s.system.Root.RequestFuture(s.user, &carry{}, time.Second).Result()
	if err != nil {
		return who, nil //nolint:nilerr // the console is slow: the session begins with what this one had
	}
	c, ok := res.(*carried)
	if !ok {
		return nil, fmt.Errorf("BUG: the answer is a %T", res)
	}
	return c, nil
}

// end leaves the cluster.
func (s *session) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveCluster)
	defer cancel()
	var errs []error
	if s.user != nil {
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			_ = s.system.Root.StopFuture(s.user).Wait()
		}()
		select {
		case <-stopped:
		case <-time.After(byeFor): // it is printing, and the terminal is stuck
		}
	}
	if s.member != nil {
		errs = append(errs, s.member.Shutdown(ctx))
	}
	errs = append(errs, s.rt.Shutdown(ctx))
	s.system.Shutdown()
	return errors.Join(errs...)
}
