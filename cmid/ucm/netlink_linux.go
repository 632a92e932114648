package ucm

import (
	"encoding/binary"

	"github.com/rdmactor/rdmactor/cmid/ucm/uabi"
	"github.com/rdmactor/rdmactor/internal/nldev"
)

// Of the kernel's <rdma/rdma_netlink.h>.
const (
	getChardev      = nldev.Client | 15 // RDMA_NLDEV_CMD_GET_CHARDEV
	attrChardevType = 69                // RDMA_NLDEV_ATTR_CHARDEV_TYPE
	attrChardevName = 70                // RDMA_NLDEV_ATTR_CHARDEV_NAME
	attrChardevABI  = 71                // RDMA_NLDEV_ATTR_CHARDEV_ABI
	clientName      = "rdma_cm\x00"     // what is asked for
)

const noIndex = uabi.NoDevice

// chardev is a device file as the kernel knows it.
type chardev struct {
	name string // in /dev/infiniband
	abi  uint32
}

// askChardev asks the kernel for rdma_cm's device file, which loads the module if there is one.
func askChardev() (c chardev, err error) {
	_, err = nldev.Ask(getChardev, false, nldev.Attr(nil, attrChardevType, []byte(clientName)), func(payload []byte) (err error) {
		c, err = parseChardev(payload)
		return err
	})
	return c, err
}

// parseChardev reads the answer.
func parseChardev(payload []byte) (c chardev, err error) {
	err = nldev.Each(payload, func(kind uint16, value []byte) error {
		switch {
		case kind == attrChardevName:
			c.name = nldev.Text(value)
		case kind == attrChardevABI && len(value) >= 8:
			c.abi = uint32(binary.NativeEndian.Uint64(value))
		}
		return nil
	})
	switch {
	case err != nil:
		return chardev{}, err
	case c.name == "":
		return c, nldev.Protocol("no name in the answer")
	}
	return c, nil
}

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
