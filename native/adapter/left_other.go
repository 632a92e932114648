//go:build !linux

package main

import (
	"context"
	"fmt"

	"github.com/rdmactor/rdmactor/verbs"
)

// objects fails: only Linux has devices.
func objects(string) (map[string]uint64, error) {
	return nil, fmt.Errorf("objects of devices: %w", verbs.ErrNotSupported)
}

func settled(context.Context, string, map[string]uint64, error) (clean bool, left string) {
	return false, "not known"
}
