package world

import cmap "github.com/orcaman/concurrent-map"

// An ActorSystem's registry is 1,024 maps of this many shards, which lets many processors use it
// concurrently. Making them takes two thirds of a small World's time, and a World uses them one at
// a time. The number belongs to the process, and must not change once there is an ActorSystem.
func init() { cmap.SHARD_COUNT = 1 }
