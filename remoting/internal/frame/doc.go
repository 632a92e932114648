// Package frame encodes and decodes the messages that nodes of package remoting exchange. A frame
// is one message of a link: records, one behind the other. The bytes are in docs/remoting-wire.md;
// this is where they are decided.
//
// It is pure. Records and bytes come in, bytes, records and errors go out. It does no I/O, reads no
// clock, starts nothing, and knows neither connections nor actors.
//
//	record.go   Record, Kind, PID, Pair, Hello, Code: the content
//	limits.go   how long each part may be, and Error
//	writer.go   Writer: records to bytes
//	reader.go   Reader: bytes to records
//	names.go    Names: the names that come again and again, without a copy each
//
// # Writing
//
// Reset starts a frame behind the contents of the caller's slice. Append adds a record.
//
// If the target, the sender or the type equals the one of the record before, one bit states so. A
// frame therefore makes sense only as a whole, and needs nothing but itself: it can be sent again.
//
// A Writer refuses to write records that a Reader would refuse. So a user's long name costs that
// message, and never the link.
//
// # Reading
//
// Next reads one record after the other. A Record's Body is a part of the frame; its strings are
// their own. Every length is compared with its limit and with the rest of the frame before anything
// is allocated. One record allocates at most as many bytes as it has, and its pairs.
//
// # Ownership
//
// A Writer, a Reader and Names belong to one goroutine at a time. A Writer's bytes are the caller's
// slice, grown by append. Names may be used for one frame after the other.
//
// # Errors
//
// Every error is an *Error, with the kind of record, the part of it, and where it is in the frame.
// errors.Is finds ErrTruncated, ErrTooLong or ErrMalformed; and EPROTO if it was read, EINVAL if it
// was to be written. After an error a Reader reads nothing more: its link has to end.
//
// # Limitations
//
// The link judges whether a record is allowed at this time, and for which actors. It also judges a
// Hello of another version: the part that all versions share is read.
package frame
