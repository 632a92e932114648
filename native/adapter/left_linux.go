package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/internal/nldev"
)

// settling is the time limit for the kernel to release a process's objects.
const settling = 30 * time.Second

// countObjects counts the device's objects, of all processes.
func countObjects(device string) (map[string]uint64, error) {
	all, err := nldev.Devices()
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		if d.Name == device {
			return nldev.Counts(d.Index)
		}
	}
	return nil, fmt.Errorf("%s is gone", device)
}

// waitSettled waits until a device has at most as many objects as before. If they could not be
// counted, left reports that.
func waitSettled(ctx context.Context, device string, before map[string]uint64, err error) (clean bool, left string) {
	if err != nil {
		return false, "not known: " + err.Error()
	}
	for end := time.Now().Add(settling); ; {
		now, err := countObjects(device)
		if err != nil {
			return false, "not known: " + err.Error()
		}
		more := listGrown(before, now)
		switch {
		case more == "":
			return true, "nothing"
		case time.Now().After(end):
			return false, more + " (of this test, or of another program that uses the device meanwhile)"
		}
		select {
		case <-ctx.Done():
			return false, more
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// listGrown lists the kinds of objects of which there are more.
func listGrown(before, now map[string]uint64) string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(now)) {
		if now[kind] > before[kind] {
			all = append(all, fmt.Sprintf("%s %d instead of %d", kind, now[kind], before[kind]))
		}
	}
	return strings.Join(all, ", ")
}
