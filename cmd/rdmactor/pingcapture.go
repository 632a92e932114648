package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/iwarp"
)

// startCapture starts writing --pcap's file. stop finishes the file after the device is closed.
func (s *session) startCapture(driver cmid.Driver) (stop func() error, err error) {
	device, ok := driver.(*iwarp.Driver)
	if !ok {
		return nil, errors.New("--pcap: only the embedded device sees what it sends; add --device iwarp, or capture at the interface")
	}
	// readable only by its owner: it has every byte of every message, and keys
	file, err := os.OpenFile(s.pcap, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--pcap: %w", err)
	}
	c, err := device.StartCapture(iwarp.CaptureConfig{Writer: file})
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
		defer cancel()
		err := errors.Join(c.Stop(ctx), file.Close())
		if err != nil {
			return fmt.Errorf("--pcap %s: %w", s.pcap, err)
		}
		if n := c.Stats(); n.Dropped > 0 {
			fmt.Fprintf(s.stderr, "%s of %s, and %d were dropped: the file was slower, or is full\n", plural(int(n.Packets), "packet"), s.pcap, n.Dropped)
		}
		return nil
	}, nil
}
