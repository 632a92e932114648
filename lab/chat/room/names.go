package room

import (
	"slices"
	"strings"
	"unicode"

	"go.mau.fi/util/confusable"
)

// Names is a map of things by their names. No two names look the same: a thing is stored under both
// likenesses of its name, and no other thing is stored there.
type Names[T any] map[string]T

// Find returns the thing with that name, or with a name that looks like it.
func (n Names[T]) Find(name string) (thing T, ok bool) {
	for _, l := range likenesses(name) {
		if thing, ok = n[l]; ok {
			break
		}
	}
	return thing, ok
}

// Put stores a thing under its name, and replaces one under a name that looks like it.
func (n Names[T]) Put(name string, thing T) {
	for _, l := range likenesses(name) {
		n[l] = thing
	}
}

// Remove deletes the thing stored under the name.
func (n Names[T]) Remove(name string) {
	for _, l := range likenesses(name) {
		delete(n, l)
	}
}

// likenesses returns the skeleton of a name, and that of the name in small letters. Names that look
// alike have one of them in common: "ann" and "Ann", or with a Cyrillic а; and "Max" and "max",
// though only the small m looks like rn.
func likenesses(name string) [2]string {
	return [2]string{strings.ToLower(skeleton(name)), skeleton(strings.ToLower(name))}
}

// skeleton returns the same string for all names that look the same. A mark that follows itself
// counts once, because it is drawn over itself.
func skeleton(name string) string {
	runes := []rune(confusable.Skeleton(name))
	return string(slices.CompactFunc(runes, func(a, b rune) bool { return a == b && unicode.Is(unicode.Mn, a) }))
}

// strayMark reports whether name has a mark of one script on a letter of another. It may be
// invisible there.
func strayMark(name string) bool {
	on := ""
	for _, r := range name {
		switch script := scriptOf(r); {
		case script == "Inherited":
		case !unicode.IsMark(r):
			on = script
		case script != on:
			return true
		}
	}
	return false
}

func scriptOf(r rune) string {
	for name, table := range unicode.Scripts {
		if unicode.Is(table, r) {
			return name
		}
	}
	return ""
}
