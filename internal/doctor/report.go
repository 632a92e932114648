package doctor

import "net/netip"

// Report lists the machine's devices, and the missing parts.
type Report struct {
	Program string   `json:"program"` // including its version
	Kernel  string   `json:"kernel"`  // release
	User    int      `json:"user"`
	CM      Node     `json:"rdma_cm"`
	Modules []string `json:"modules"` // loaded modules of interest
	// Library is libibverbs, or nil if this program is linked without.
	Library *Library `json:"libibverbs"`
	Limits  Limits   `json:"limits"`
	Devices []Device `json:"devices"`
	// Netdevs are Ethernet interfaces that are up, on which a software device could be made.
	Netdevs []string `json:"netdevs"`
	// Missing starts with the problems that make all devices unusable.
	Missing []Missing `json:"missing"`
	Usable  bool      `json:"usable"` // at least one device is usable

	subsystem bool         // the kernel has RDMA
	plain     []netip.Addr // addresses without an RDMA device
	unmatched bool         // an address has a device without a GUID, and it is unknown which device
}

// Plain returns the addresses of this machine that no RDMA device has.
func (r *Report) Plain() []netip.Addr { return r.plain }

// Node is a device file.
type Node struct {
	Path string `json:"path,omitempty"` // "": none
	// Error is why it cannot be opened, and Way a remedy.
	Error string `json:"error,omitempty"`
	Way   string `json:"way_out,omitempty"`
}

// Library is libibverbs.
type Library struct {
	File    string   `json:"file,omitempty"`    // including its version; "": it cannot be loaded
	Devices []string `json:"devices"`           // devices for which it has drivers
	Drivers []string `json:"drivers"`           // their files
	Error   string   `json:"error,omitempty"`   // why it cannot be used
	Way     string   `json:"way_out,omitempty"` // a remedy
}

// Limits are this process's.
type Limits struct {
	LockedMemory uint64 `json:"locked_memory_bytes"` // RLIMIT_MEMLOCK; all ones: unlimited
	MayLock      bool   `json:"may_lock"`            // CAP_IPC_LOCK: RLIMIT_MEMLOCK does not apply
	OpenFiles    uint64 `json:"open_files"`
	Threads      uint64 `json:"threads_left"` // number of threads that this process may still
	// start, by ThreadLimit
	// ThreadLimit is the limit that leaves the fewest threads; "": unknown.
	ThreadLimit string `json:"thread_limit,omitempty"`
}

// GroupLimit is a control group's limit of a device's objects.
type GroupLimit struct {
	File     string `json:"file"`
	Resource string `json:"resource"` // hca_handle, hca_object
	Max      uint64 `json:"max"`
	Used     uint64 `json:"used"`
}

// Device is an RDMA device.
type Device struct {
	Name      string `json:"name"`
	Driver    string `json:"driver,omitempty"` // the kernel's name: rxe, mlx5
	Transport string `json:"transport,omitempty"`
	NodeGUID  string `json:"node_guid,omitempty"`
	Firmware  string `json:"firmware,omitempty"`
	Board     string `json:"board,omitempty"`
	PCI       string `json:"pci,omitempty"`
	File      string `json:"file,omitempty"` // of its data path
	Ports     []Port `json:"ports"`
	// Addresses are those by which rdma_cm finds the device.
	Addresses []string `json:"addresses"`
	// Path is what opens it here: "uverbs", "libibverbs", or "" for nothing. Error and Way are the
	// reason for a failure, and a remedy.
	Path   string      `json:"data_path,omitempty"`
	Error  string      `json:"error,omitempty"`
	Way    string      `json:"way_out,omitempty"`
	Limits *Capability `json:"limits"` // nil: it was not opened
	// Groups are the limits that this process's control groups set.
	Groups []GroupLimit `json:"cgroup_limits,omitempty"`
	Usable bool         `json:"usable"`

	guid uint64 // 0: unknown, and not compared
}

// Capability has the limits of an open device.
type Capability struct {
	QueuePairs       int    `json:"queue_pairs"`
	Outstanding      int    `json:"outstanding_requests"` // per queue
	CompletionQueues int    `json:"completion_queues"`
	Completions      int    `json:"completions"` // per queue
	MemoryRegions    int    `json:"memory_regions"`
	Reads            int    `json:"reads"`         // outstanding per queue pair
	Inline           int    `json:"inline_bytes"`  // of a send
	Message          uint32 `json:"message_bytes"` // maximum
	Datagram         int    `json:"datagram_bytes,omitempty"`
	Immediate        bool   `json:"immediate"`
	Atomics          bool   `json:"atomics"`
}

// Port is a port of a device.
type Port struct {
	Number    int    `json:"number"`
	State     string `json:"state,omitempty"` // ACTIVE, DOWN, INIT
	Physical  string `json:"physical_state,omitempty"`
	LinkLayer string `json:"link_layer,omitempty"`
	Rate      string `json:"rate,omitempty"`
	Netdev    string `json:"netdev,omitempty"`
	MTU       int    `json:"netdev_mtu_bytes,omitempty"`
	GIDs      []GID  `json:"gids"`
	Cut       bool   `json:"gids_cut,omitempty"` // the list is incomplete
}

// GID is an address of a port.
type GID struct {
	Index   int    `json:"index"`
	Type    string `json:"type,omitempty"` // "RoCE v2", "IB/RoCE v1"
	Address string `json:"address"`
	Netdev  string `json:"netdev,omitempty"`
}

// Missing is something that is missing.
type Missing struct {
	What string `json:"what"`
	Way  string `json:"way_out"`
}
