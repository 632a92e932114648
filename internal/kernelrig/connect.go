//go:build linux

package kernelrig

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/verbs"
)

// Connect brings two queue pairs of the machine's InfiniBand device to RTS, without a connection
// manager.
func Connect(t testing.TB, d verbs.Device, a, b verbs.ProviderQP) error {
	t.Helper()
	gid := netip.MustParseAddr(Env(t, "RDMA_ADDR")).As16()
	index, err := gidIndex(d.Name(), gid)
	if err != nil {
		return err
	}
	for _, x := range [][2]verbs.ProviderQP{{a, b}, {b, a}} {
		if err := bringToRTS(x[0], x[1].Num(), index, gid); err != nil {
			return err
		}
	}
	return nil
}

// bringToRTS brings a queue pair to RTS.
func bringToRTS(qp verbs.ProviderQP, peer uint32, index uint8, gid [16]byte) error {
	if err := qp.Modify(&verbs.QPAttr{State: verbs.QPInit, Port: 1, AccessFlags: 15},
		verbs.QPAttrState|verbs.QPAttrPKeyIndex|verbs.QPAttrPort|verbs.QPAttrAccessFlags); err != nil {
		return err
	}
	if err := qp.Modify(&verbs.QPAttr{
		State: verbs.QPRTR, PathMTU: 3, DestQPN: peer, RQPSN: 1000, MaxDestRDAtomic: 4, MinRNRTimer: 12,
		AH: verbs.AHAttr{Global: true, Port: 1, GRH: verbs.GlobalRoute{DGID: gid, SGIDIndex: index, HopLimit: 64}},
	}, verbs.QPAttrState|verbs.QPAttrAV|verbs.QPAttrPathMTU|verbs.QPAttrDestQPN|verbs.QPAttrRQPSN|
		verbs.QPAttrMaxDestRDAtomic|verbs.QPAttrMinRNRTimer); err != nil {
		return err
	}
	return qp.Modify(&verbs.QPAttr{State: verbs.QPRTS, SQPSN: 1000, Timeout: 14, RetryCount: 7, RNRRetry: 7, MaxRDAtomic: 4},
		verbs.QPAttrState|verbs.QPAttrSQPSN|verbs.QPAttrTimeout|verbs.QPAttrRetryCount|verbs.QPAttrRNRRetry|verbs.QPAttrMaxRDAtomic)
}

// gidIndex returns the index of the device's first GID of that value.
func gidIndex(device string, gid [16]byte) (uint8, error) {
	for i := range 256 {
		text, err := os.ReadFile(filepath.Join("/sys/class/infiniband", device, "ports/1/gids", strconv.Itoa(i)))
		if err != nil {
			break
		}
		if strings.ReplaceAll(strings.TrimSpace(string(text)), ":", "") == hex.EncodeToString(gid[:]) {
			return uint8(i), nil
		}
	}
	return 0, fmt.Errorf("%s has no GID %x", device, gid)
}
