package datapath

import "github.com/rdmactor/rdmactor/actor/internal/memory"

// Pool is memory that a loop has for one purpose, in bytes.
type Pool struct {
	Name       string
	Limit      int
	Registered int // registered with devices
	Used       int // of Registered; the rest is kept for later use
	Waiting    int // connections that wait until there is some
}

// DeviceInfo describes a loop's use of a device.
type DeviceInfo struct {
	Name        string
	Connections int // those with a queue pair
	Queues      int // of completions
	Held        int // received messages that owners have not returned
	Memory      int // bytes for one-sided operations
}

// Pools returns the pools of the loop.
func (l *Loop) Pools() []Pool {
	receive := poolOf("receive", l.RecvBudget)
	receive.Waiting += len(l.Shares.paused)
	oneSided := l.limits.Memory - l.MemoryBudget
	return []Pool{
		receive, poolOf("send", l.SendBudget), poolOf("large", l.HeldBudget),
		{Name: "one-sided", Limit: l.limits.Memory, Registered: oneSided, Used: oneSided},
	}
}

// DeviceInfos describes the loop's use of each device.
func (l *Loop) DeviceInfos() []DeviceInfo {
	infos := make([]DeviceInfo, 0, len(l.Devices))
	for _, d := range l.Devices {
		infos = append(infos, DeviceInfo{Name: d.Verbs.Name(), Connections: d.Conns, Queues: len(d.Queues), Held: d.heldByOwners(), Memory: d.memory})
	}
	return infos
}

func poolOf(name string, b *memory.Budget) Pool {
	used, waiting := b.InUse()
	return Pool{Name: name, Limit: b.Total(), Registered: b.Total() - b.Free, Used: used, Waiting: waiting}
}
