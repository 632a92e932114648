package states

// Flavor is a set of bits that decides a cell of the table together with state and input. The zero
// Flavor is a connected (RC) identifier of an InfiniBand or RoCE device, with no device attached
// yet. The user of the table sets Device as soon as a device is attached, and keeps it set until
// Step has judged DeviceRemoval: without that bit a DeviceRemoval in Bound or Listening is
// ignored.
type Flavor uint8

// The bits.
const (
	// connections go through iw_cm; else through ib_cm (InfiniBand and RoCE)
	IWARP Flavor = 1 << iota
	UD           // a datagram port space (RDMA_PS_UDP, RDMA_PS_IPOIB); else RC
	// a device is attached, by BindAddr to its address or since AddrResolved
	Device

	// NumFlavors is the number of combinations.
	NumFlavors = 1 << iota
)

// String names the bits: "IB RC", "iWARP RC, device".
func (f Flavor) String() string {
	s := "IB"
	if f&IWARP != 0 {
		s = "iWARP"
	}
	if f&UD != 0 {
		s += " UD"
	} else {
		s += " RC"
	}
	if f&Device != 0 {
		s += ", device"
	}
	return s
}

// MarshalText returns String's text.
func (f Flavor) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// Exists reports whether an identifier of this flavor can ever be in state s. Step still has an
// answer for every state: it judges a state that does not exist like Failed.
func Exists(f Flavor, s State) bool {
	return s < State(NumStates) && existing[f%Flavor(NumFlavors)].has(s)
}

// hasDevice reports whether a device is attached in state s: from AddrResolved on always, before
// that depending on the flavor, and no longer in Removed and Destroying.
func hasDevice(f Flavor, s State) bool {
	switch {
	case deviceless.has(s):
		return false
	case deviceOptional.has(s):
		return f&Device != 0
	}
	return live.has(s)
}

// flavorSet is a set of flavors: bit i stands for Flavor(i).
type flavorSet uint8

const (
	every  flavorSet = 0xff
	iw     flavorSet = 0xaa // bit 0 of i is set
	ud     flavorSet = 0xcc // bit 1 of i is set
	device flavorSet = 0xf0 // bit 2 of i is set
	ib               = every &^ iw
	rc               = every &^ ud
)

func (fs flavorSet) has(f Flavor) bool { return fs>>f&1 != 0 }

// stateSet is a set of states: bit i stands for State(i).
type stateSet uint32

func in(states ...State) stateSet {
	var ss stateSet
	for _, s := range states {
		ss |= 1 << s
	}
	return ss
}

func (ss stateSet) has(s State) bool { return ss>>s&1 != 0 }
