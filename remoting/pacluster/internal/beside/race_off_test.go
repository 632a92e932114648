//go:build !race

package beside

const raceDetector = false
