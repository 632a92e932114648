package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc"
	"github.com/rdmactor/rdmactor/rpc/rpchealth"
	"github.com/rdmactor/rdmactor/rpc/rpcreflect"
)

// probeServer runs the command probe.
func probeServer(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseRPC("probe", probeUsage, args, stdout)
	if err != nil {
		return err
	}
	by := time.Now().Add(o.timeout) // for the connection and the call
	return o.withClient(ctx, stderr, func(_ *rdma.Runtime, c *rpc.Client) error {
		ctx, cancel := context.WithDeadline(ctx, by)
		defer cancel()
		serving, err := rpchealth.Check(ctx, c, o.service)
		switch {
		case errors.Is(err, rpc.ErrUnknownMethod) && o.service == "":
			return nil // it has no rpchealth, and takes calls
		case o.alive && showsAlive(err):
			return nil
		case err == nil && !serving:
			return fmt.Errorf("the server at %s does not serve %s", o.addr, cmp.Or(o.service, "at present"))
		}
		return err
	})
}

// showsAlive reports whether a call that ended with err shows that its server is alive.
func showsAlive(err error) bool {
	e, ok := errors.AsType[*rpc.Error](err)
	return err == nil || ok && (e.Fate == rpc.FateAnswered || e.Fate == rpc.FateRefused)
}

// listMethods runs the command list.
func listMethods(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseRPC("list", listUsage, args, stdout)
	if err != nil {
		return err
	}
	return o.withClient(ctx, stderr, func(_ *rdma.Runtime, c *rpc.Client) error {
		ctx, cancel := context.WithTimeout(ctx, o.timeout)
		defer cancel()
		names, err := rpcreflect.List(ctx, c)
		if err != nil {
			return noReflection(err)
		}
		for _, n := range names {
			fmt.Fprintln(stdout, n)
		}
		return nil
	})
}

// noReflection explains the error of a server that does not describe its methods.
func noReflection(err error) error {
	if errors.Is(err, rpc.ErrUnknownMethod) && !errors.Is(err, rpcreflect.ErrNoService) {
		return fmt.Errorf("%w: the server does not describe its methods; it has to call rpcreflect.Register", err)
	}
	return err
}

// callMethod runs the command call.
func callMethod(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseRPC("call", callUsage, args, stdout)
	if err != nil {
		return err
	}
	return o.withClient(ctx, stderr, func(_ *rdma.Runtime, c *rpc.Client) error {
		m, err := o.findMethod(ctx, c)
		if err != nil {
			return err
		}
		var in io.Reader = strings.NewReader(o.request)
		if o.request == "-" {
			in = os.Stdin
		}
		w := described{m: m, in: json.NewDecoder(bufio.NewReader(in)), out: stdout}
		ctx = o.metadataContext(ctx)
		switch {
		case m.IsStreamingClient() && m.IsStreamingServer():
			return w.callBidiStream(ctx, c)
		case m.IsStreamingClient():
			return w.callClientStream(ctx, c)
		case m.IsStreamingServer():
			return w.callServerStream(ctx, c)
		}
		ctx, cancel := context.WithTimeout(ctx, o.timeout)
		defer cancel()
		return w.callUnary(ctx, c)
	})
}

// findMethod asks the server what its method is.
func (o *rpcFlags) findMethod(ctx context.Context, c *rpc.Client) (protoreflect.MethodDescriptor, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	m, err := rpcreflect.Find(ctx, c, o.method)
	return m, noReflection(err)
}

// described is a call of a method that the server has described.
type described struct {
	m   protoreflect.MethodDescriptor
	in  *json.Decoder
	out io.Writer
}

func nameOf(m protoreflect.MethodDescriptor) string {
	return string(m.Parent().FullName()) + "/" + string(m.Name())
}

// readRequest reads a request. io.EOF: there is none.
func (d *described) readRequest() (*rpc.Bytes, error) {
	var text json.RawMessage
	if err := d.in.Decode(&text); errors.Is(err, io.EOF) {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("the request is no JSON: %w", err)
	}
	return d.encodeRequest(text)
}

// encodeRequest encodes a request.
func (d *described) encodeRequest(text []byte) (*rpc.Bytes, error) {
	m := dynamicpb.NewMessage(d.m.Input())
	if err := protojson.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("the request is no %s: %w", d.m.Input().FullName(), err)
	}
	b, err := proto.Marshal(m)
	return (*rpc.Bytes)(&b), err
}

// readUnary reads the request of a method that has one; without JSON it is empty.
func (d *described) readUnary() (*rpc.Bytes, error) {
	q, err := d.readRequest()
	if errors.Is(err, io.EOF) {
		return &rpc.Bytes{}, nil
	}
	return q, err
}

// printAnswer prints an answer on a line.
func (d *described) printAnswer(b *rpc.Bytes) error {
	m := dynamicpb.NewMessage(d.m.Output())
	if err := proto.Unmarshal(*b, m); err != nil {
		return fmt.Errorf("the answer is no %s: %w", d.m.Output().FullName(), err)
	}
	text, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil { // protojson spaces differently in every build
		return err
	}
	_, err = fmt.Fprintf(d.out, "%s\n", line.Bytes())
	return err
}

func (d *described) callUnary(ctx context.Context, c *rpc.Client) error {
	q, err := d.readUnary()
	if err != nil {
		return err
	}
	r, err := rpc.Call(ctx, c, rpc.NewMethod[rpc.Bytes, rpc.Bytes](nameOf(d.m)), q)
	if err != nil {
		return err
	}
	return d.printAnswer(r)
}

func (d *described) callServerStream(ctx context.Context, c *rpc.Client) error {
	q, err := d.readUnary()
	if err != nil {
		return err
	}
	for item, err := range rpc.Items(ctx, c, rpc.NewStream[rpc.Bytes, rpc.Bytes](nameOf(d.m)), q) {
		if err == nil {
			err = d.printAnswer(item)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *described) callClientStream(ctx context.Context, c *rpc.Client) error {
	s, err := rpc.OpenClientStream(ctx, c, rpc.NewClientStream[rpc.Bytes, rpc.Bytes](nameOf(d.m)))
	if err != nil {
		return err
	}
	defer s.Close()
	if err = d.sendAll(s.Send); err != nil {
		return err
	}
	r, err := s.CloseAndReceive()
	if err != nil {
		return err
	}
	return d.printAnswer(r)
}

// sendAll sends all requests, or those until the server has ended the stream.
func (d *described) sendAll(send func(*rpc.Bytes) error) error {
	for {
		q, err := d.readRequest()
		if err == nil {
			err = send(q)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (d *described) callBidiStream(ctx context.Context, c *rpc.Client) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s, err := rpc.OpenBidiStream(ctx, c, rpc.NewBidiStream[rpc.Bytes, rpc.Bytes](nameOf(d.m)))
	if err != nil {
		return err
	}
	defer s.Close()
	go func() { // at the end of the program it may still wait for standard input
		if err := d.sendAll(s.Send); err != nil {
			cancel(err)
			return
		}
		s.CloseSend()
	}()
	for item, err := range s.All() {
		if err == nil {
			err = d.printAnswer(item)
		}
		if err != nil {
			if cause := context.Cause(ctx); cause != nil { // of the requests
				return cause
			}
			return err
		}
	}
	return nil
}
