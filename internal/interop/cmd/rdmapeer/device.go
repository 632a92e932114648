package main

import (
	"fmt"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/device"
)

// driver is what --device names.
func driver(kind string) (cmid.Driver, error) {
	switch k := device.Kind(kind); k {
	case device.IWARP, device.Kernel:
		return device.Choice{Kind: k}.Driver(), nil
	}
	return nil, fmt.Errorf("--device %s: have iwarp and kernel", kind)
}
