package ucm

import (
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/internal/nldev"
)

const noIndex = uabi.NoDevice

// askIndices asks the kernel for its devices' names and indices. An index is one device's, and no
// later one's.
func askIndices() (map[string]uint32, error) {
	devices, err := nldev.Devices()
	all := make(map[string]uint32)
	for _, d := range devices {
		all[d.Name] = d.Index
	}
	return all, err
}
