// Package keyfile reads and writes files with pre-shared keys, for rdma.Security's PSK mode.
//
//	list, err := keyfile.Load("chat.key")
//	...
//	keys := new(rdma.Keyring)
//	err = keyfile.Use(keys, list)
//	clear(list)
//	rt, err := rdma.Open(system, rdma.Config{Security: &rdma.Security{Mode: rdma.PSK, Keys: keys}})
//
// A file has a key on each line: an identity, a colon, and the key's 32 bytes in base64 (that of
// RFC 4648, section 4, with its padding). Everything before the last colon is the identity. Empty
// lines, and lines that begin with #, mean nothing. `rdmactor keygen` makes such files.
//
// A program connects with the key on the first line. All of them may connect to it. So two machines
// can have the same file, and the file of a server has a line for each client, as
//
//	cat ann.key bob.key | install -m 600 /dev/stdin peers.key
//
// makes it. No two identities have the same key. An identity may have two keys while one replaces
// the other: add the new key behind the others (Add), distribute the file, then remove the old line
// everywhere. A program that uses Follow needs no restart for that, and no connection ends. Nothing
// in a file shows whether it is complete. To change it while programs follow it, write another file
// and rename it (install -m 600 ... peers.key.new && mv peers.key.new peers.key).
//
// # Ownership
//
// The caller owns the result of Read and Load, and overwrites it (clear) when the Keyring has it.
// The package overwrites its own buffers before it returns. The program may still have copies of a
// key in memory: the Keyring's, and those in memory that the garbage collector has not reused.
//
// # Ordering
//
// Follow calls its function on the goroutine that has called Follow, once for each change that it
// sees, and for the latest state of the file.
//
// # Errors
//
// Errors never contain a key. An invalid line is a *LineError, which has its number (EINVAL). A
// file that others can use is a *ModeError (EACCES): only its owner may write it, and only its
// owner may read it, or its group too if it is root's. A file without keys is ErrNoKeys.
//
// # Limitations
//
// A file has at most 4 MiB. It is not encrypted: its mode protects it. Access lists can make a file
// look as if its group could read it. In that case open the file and use Read. Add keeps the owner,
// the group and the mode, and no access lists. Where a file system has no locks (ENOLCK,
// EOPNOTSUPP), of two calls of Add at the same time one may lose its key.
package keyfile
