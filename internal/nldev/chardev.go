package nldev

import (
	"encoding/binary"
	"fmt"
)

const (
	attrChardevType = 69 // RDMA_NLDEV_ATTR_CHARDEV_TYPE
	attrChardevName = 70 // RDMA_NLDEV_ATTR_CHARDEV_NAME
	attrChardevABI  = 71 // RDMA_NLDEV_ATTR_CHARDEV_ABI
	attrDriverID    = 73 // RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID

	getChardev = Client | 15 // RDMA_NLDEV_CMD_GET_CHARDEV
)

// Chardev is a device file as the kernel knows it.
type Chardev struct {
	Name   string // name in /dev/infiniband
	ABI    uint32
	Driver uint32 // driver of a device's data path: enum rdma_driver_id
}

// Of the kernel's enum rdma_driver_id.
const (
	DriverRXE = 14
	DriverSIW = 18
)

var drivers = []string{
	"", "mlx5", "mlx4", "cxgb3", "cxgb4", "mthca", "bnxt_re", "ocrdma", "nes", "irdma", "vmw_pvrdma", "qedr", "hns", "usnic", "rxe", "hfi1", "qib",
	"efa", "siw", "erdma", "mana",
}

// DriverName returns the name of a driver, with its number if this package does not know it; "" for
// 0.
func DriverName(driver uint32) string {
	if driver < uint32(len(drivers)) {
		return drivers[driver]
	}
	return fmt.Sprintf("number %d", driver)
}

// parseChardev reads a message of RDMA_NLDEV_CMD_GET_CHARDEV.
func parseChardev(payload []byte) (c Chardev, err error) {
	e := binary.NativeEndian
	err = Each(payload, func(kind uint16, value []byte) error {
		switch {
		case kind == attrChardevName:
			c.Name = Text(value)
		case kind == attrChardevABI && len(value) >= 8:
			c.ABI = uint32(e.Uint64(value))
		case kind == attrDriverID && len(value) >= 4:
			c.Driver = e.Uint32(value)
		}
		return nil
	})
	switch {
	case err != nil:
		return Chardev{}, err
	case c.Name == "":
		return c, Protocol("no name in the answer")
	}
	return c, nil
}
