package native

// Library is the libibverbs that a program loads.
type Library struct {
	File    string   // its name, with the version if known: libibverbs.so.1.14.44.0
	Devices []string // names of devices that it has drivers for
	Drivers []string // files of the drivers that it has loaded
}
