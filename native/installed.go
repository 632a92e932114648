package native

// Library is the libibverbs that a program loads.
type Library struct {
	File    string   // its name, with the version if that is known: libibverbs.so.1.14.44.0
	Devices []string // that it has drivers for, by name
	Drivers []string // the files of drivers that it has loaded
}
