// Command chat is a chat without a host. Each process is a member of a cluster, whose messages go
// over RDMA. The room is a virtual actor: the first request makes it, on one of the members. When
// that one is killed, the room is made again on another one, and the people in it enter again.
//
//	chat [--members HOST:PORT,...] [--nick NAME]
//
// At the addresses of --members the processes ask each other by HTTP whether they are there. Each
// has the first of them that is free on its machine. Their messages go over RDMA, between ports
// that the devices choose. Beyond loopback rdma.Config.Security has to be set: see examples/chat.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/pacluster"
)

const leaveFor = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program immediately
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "chat:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	f := flag.NewFlagSet("chat", flag.ContinueOnError)
	all := f.String("members", "127.0.0.1:7471,127.0.0.1:7472,127.0.0.1:7473", "the `ADDRESSES` of all members")
	nick := f.String("nick", fmt.Sprint("guest", os.Getpid()), "your `NAME`")
	if err := f.Parse(args); err != nil {
		return err
	}
	names := strings.Split(*all, ",")
	for _, name := range names {
		n, err := joinCluster(ctx, name, names)
		if errors.Is(err, unix.EADDRINUSE) || errors.Is(err, unix.EADDRNOTAVAIL) {
			continue // it is another process, or another machine
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "-- this is", n.member.Node.Name())
		return errors.Join(n.talk(ctx, *nick, in, out), n.shutdown())
	}
	return fmt.Errorf("each of %s is taken, or not this machine's", *all)
}

// node is this process as a member of the cluster.
type node struct {
	rt     *rdma.Runtime
	member *pacluster.Member
}

// joinCluster joins the cluster under a name.
func joinCluster(ctx context.Context, name string, all []string) (*node, error) {
	host, _, err := net.SplitHostPort(name)
	if err != nil {
		return nil, err
	}
	provider, err := pacluster.Automanaged{Listen: name, Members: all}.Provider()
	if err != nil {
		return nil, err
	}
	// Proto.Actor's cluster logs members that it does not find as errors
	quiet := slog.New(slog.DiscardHandler)
	rt, err := rdma.Open(nil, rdma.Config{Device: iwarp.New(), Logger: quiet})
	if err != nil {
		return nil, err
	}
	n := &node{rt: rt}
	n.member, err = pacluster.Start(ctx, rt, pacluster.Config{
		Cluster:  "chat",
		Provider: provider,
		Kinds:    []*cluster.Kind{cluster.NewKind(roomKind, actor.PropsFromProducer(newRoom, rt.OnLoop()))},
		Remoting: remoting.Config{
			Listen: net.JoinHostPort(host, "0"), Codec: messages,
			// what the others may do here, apart from what makes a cluster
			Expose: remoting.Expose{Reach: []string{personName}, Watch: []string{personName}},
		},
	})
	if err != nil {
		return nil, errors.Join(err, n.shutdown())
	}
	return n, nil
}

// talk talks in the room until in or ctx ends, or the others have removed this member.
func (n *node) talk(ctx context.Context, nick string, in io.Reader, out io.Writer) error {
	ctx, leave := context.WithCancelCause(ctx)
	next := make(chan struct{}, 1)
	next <- struct{}{}
	p := &person{nick: nick, out: out, next: next, leave: leave, find: func() *actor.PID { return n.member.Cluster.Get("lobby", roomKind) }}
	root := n.rt.System().Root
	pid, err := root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return p }, n.rt.OffLoop()), personName)
	if err != nil {
		return err
	}
	go func() {
		lines := bufio.NewScanner(in)
		for { // a pipe is read no faster than the room takes its lines
			select {
			case <-next:
			case <-ctx.Done():
				return
			}
			if !lines.Scan() {
				leave(lines.Err())
				return
			}
			root.Send(pid, typed{lines.Text()})
		}
	}()
	select {
	case <-ctx.Done():
	case <-n.member.Expelled():
		leave(errors.New("the others have removed this process, perhaps because it stood still"))
	}
	root.Stop(pid) // the room watches it, and says goodbye to the others
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// shutdown leaves the cluster, and releases everything.
func (n *node) shutdown() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), leaveFor)
	defer cancel()
	if n.member != nil {
		err = n.member.Shutdown(ctx)
	}
	return errors.Join(err, n.rt.Shutdown(ctx))
}
