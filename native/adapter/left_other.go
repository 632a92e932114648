//go:build !linux

package main

import (
	"context"
	"fmt"

	"github.com/rdmactor/rdmactor/verbs"
)

// countObjects fails: only Linux has devices.
func countObjects(string) (map[string]uint64, error) {
	return nil, fmt.Errorf("objects of devices: %w", verbs.ErrNotSupported)
}

func waitSettled(context.Context, string, map[string]uint64, error) (clean bool, left string) {
	return false, "not known"
}
