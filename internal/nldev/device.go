package nldev

import "encoding/binary"

const (
	portGet = Client | 5 // RDMA_NLDEV_CMD_PORT_GET
	resGet  = Client | 9 // RDMA_NLDEV_CMD_RES_GET

	attrPortIndex  = 3  // RDMA_NLDEV_ATTR_PORT_INDEX
	attrSummary    = 15 // RDMA_NLDEV_ATTR_RES_SUMMARY
	attrEntry      = 16 // RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY
	attrEntryName  = 17 // RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME
	attrEntryCount = 18 // RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR
	attrNetdevName = 51 // RDMA_NLDEV_ATTR_NDEV_NAME
	mostKinds      = 64 // of objects; kernels have about ten
)

// encodeIndex encodes the attribute of a device's index.
func encodeIndex(index uint32) []byte {
	return Attr(nil, Index, binary.NativeEndian.AppendUint32(nil, index))
}

// parsePort reads a message of RDMA_NLDEV_CMD_PORT_GET: a port's number and its network interface,
// "" if it has none.
func parsePort(payload []byte) (port uint32, netdev string, err error) {
	err = Each(payload, func(kind uint16, value []byte) error {
		switch {
		case kind == attrPortIndex && len(value) >= 4:
			port = binary.NativeEndian.Uint32(value)
		case kind == attrNetdevName:
			netdev = Text(value)
		}
		return nil
	})
	if err == nil && port == 0 {
		err = Protocol("a port without a number")
	}
	return port, netdev, err
}

// parseCounts reads a message of RDMA_NLDEV_CMD_RES_GET: how many objects of each kind a device
// has.
func parseCounts(payload []byte) (map[string]uint64, error) {
	counts := make(map[string]uint64)
	err := Each(payload, func(kind uint16, value []byte) error {
		if kind != attrSummary {
			return nil
		}
		return Each(value, func(kind uint16, value []byte) error {
			if kind != attrEntry {
				return nil
			}
			name, n, err := parseCount(value)
			if counts[name] = n; err == nil && len(counts) > mostKinds {
				err = Protocol("more than %d kinds of objects", mostKinds)
			}
			return err
		})
	})
	return counts, err
}

func parseCount(entry []byte) (name string, n uint64, err error) {
	err = Each(entry, func(kind uint16, value []byte) error {
		switch {
		case kind == attrEntryName:
			name = Text(value)
		case kind == attrEntryCount && len(value) >= 8:
			n = binary.NativeEndian.Uint64(value)
		}
		return nil
	})
	if err == nil && name == "" {
		err = Protocol("a count of nothing")
	}
	return name, n, err
}
