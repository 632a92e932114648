package measure

import (
	"flag"
	"time"
)

// Settings are the flags of a program that measures.
type Settings struct {
	Rounds int           `json:"rounds"`
	Run    time.Duration `json:"run_ns"` // of each measurement
	Quick  bool          `json:"quick"`
	// Profile is the prefix of the files <Profile>.<scenario>.<contestant>.<side>, to which
	// children write their CPU profiles. If it is empty, they write none.
	Profile string `json:"-"`
	Procs   int    `json:"gomaxprocs"` // of every child, this project's and the others
	// Unpinned binds no child to a CPU: the default of a program outside a container.
	Unpinned bool `json:"unpinned"`
}

// Flags defines a flag for each setting. rounds is the default for Rounds.
func (set *Settings) Flags(f *flag.FlagSet, rounds int) {
	f.IntVar(&set.Rounds, "rounds", rounds, "`NUMBER` of interleaved rounds; the median counts")
	f.DurationVar(&set.Run, "t", time.Second, "how long each contestant is measured in each round")
	f.BoolVar(&set.Quick, "quick", false, "one round of a blink: says that everything runs, and nothing about speed")
	f.StringVar(&set.Profile, "cpuprofile", "",
		"leave the CPU profile of each measured process, of the last round, in `P`.<scenario>.<contestant>.<side>")
	const container = 2 // GOMAXPROCS that Go chooses in a container with one CPU
	f.IntVar(&set.Procs, "procs", container, "GOMAXPROCS of every measured process")
	f.BoolVar(&set.Unpinned, "unpinned", false, "bind no process to a CPU, whatever the scenario says")
}
