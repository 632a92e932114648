package main

import (
	"context"
	"fmt"
	"io"

	"github.com/rdmactor/rdmactor/cmid"
)

// ping is the subcommand.
func ping(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parsePing(args, stdout)
	if err != nil {
		return err
	}
	s := &session{pingFlags: o, ctx: ctx, stdout: stdout, stderr: stderr, conns: make(map[*cmid.ID]*conn)}
	s.role = &pingClient{s: s}
	if o.server {
		s.role = &pingServer{s: s}
	}
	if err := s.run(); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}
