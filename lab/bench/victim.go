package main

import (
	"bufio"
	"context"
	"errors"
	"os"

	"github.com/rdmactor/rdmactor/lab/measure"
)

// victim is the role of a member of a cluster that is killed.
type victim struct {
	Victim bool
	Entry  measure.Entry
	Ports  ports // of the members
}

// runVictim reports whether this process is a victim. If it is, runVictim first works until it is
// killed, or its parent has ended.
func runVictim() (child bool, err error) {
	var r victim
	if child, err = measure.Role(&r); !child || err != nil || !r.Victim {
		return false, err
	}
	m, err := joinCluster(r.Entry, r.Ports, true)
	if err == nil {
		err = measure.Report(m.Cluster().ActorSystem.Address())
	}
	bufio.NewScanner(os.Stdin).Scan() // until the parent has ended
	return true, err
}

// startVictim starts a victim, and returns its address.
func startVictim(r victim) (c *measure.Child, addr string, err error) {
	if c, err = measure.Start(context.Background(), "the victim", -1, 2, r); err != nil {
		return nil, "", err
	}
	if err := c.Ask("", &addr); err != nil {
		return nil, "", errors.Join(err, c.Stop())
	}
	return c, addr, nil
}
