//go:build !rdmadebug && !race

package actor

// poisoning and what goes with it: see the builds with the tag rdmadebug or the race detector.
const poisoning = false

func poisonBytes([]byte) {}

func checkPoison([]byte, string) {}
