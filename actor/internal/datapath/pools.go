package datapath

import "github.com/rdmactor/rdmactor/actor/internal/memory"

// Pool is memory that a loop has for one purpose, in bytes.
type Pool struct {
	Name       string
	Limit      int
	Registered int // with devices
	Used       int // of Registered; the rest is kept for what comes next
	Waiting    int // connections that wait until there is some
}

// DeviceInfo is what a loop has of a device.
type DeviceInfo struct {
	Name        string
	Connections int // with a queue pair
	Queues      int // of completions
	Held        int // messages that owners have received and not given back
	Memory      int // bytes for one-sided operations
}

// Pools is what the loop has.
func (l *Loop) Pools() []Pool {
	receive := poolOf("receive", l.RecvBudget)
	receive.Waiting += len(l.Shares.paused)
	oneSided := l.limits.Memory - l.MemoryBudget
	return []Pool{
		receive, poolOf("send", l.SendBudget), poolOf("large", l.HeldBudget),
		{Name: "one-sided", Limit: l.limits.Memory, Registered: oneSided, Used: oneSided},
	}
}

// DeviceInfos is what it has of each device.
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
