package hostile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// Mutate changes a recorded stream in one to four random places, and describes the changes. If the
// stream has CRCs, most of the changed FPDUs get a correct one, because the target is the code
// behind the check. Mutate does not modify units.
func Mutate(rng *rand.Rand, units [][]byte) (mutated [][]byte, how string) {
	m := mutation{Rand: rng, crc: hasCRC(units)}
	for _, u := range units {
		m.units = append(m.units, bytes.Clone(u))
	}
	for range 1 + rng.IntN(4) {
		if len(m.units) > 0 {
			ops[rng.IntN(len(ops))](&m)
		}
	}
	return m.units, strings.Join(m.done, ", ")
}

func hasCRC(units [][]byte) bool {
	for _, u := range units[1:] {
		if f, _, err := wire.ConsumeFPDU(u); err == nil {
			return f.CRC != 0
		}
	}
	return false
}

type mutation struct {
	*rand.Rand
	units [][]byte
	crc   bool
	done  []string
}

func (m *mutation) addNote(format string, args ...any) {
	m.done = append(m.done, fmt.Sprintf(format, args...))
}

// pickOffset chooses a unit and an offset in it, mostly in its headers.
func (m *mutation) pickOffset() (i, at int) {
	i = m.IntN(len(m.units))
	n := len(m.units[i])
	if n == 0 {
		return i, 0
	}
	if m.IntN(4) > 0 {
		n = min(n, 48)
	}
	return i, m.IntN(n)
}

// repairCRC sets the correct CRC of unit i, three times out of four.
func (m *mutation) repairCRC(i int) {
	u := m.units[i]
	if !m.crc || i == 0 || m.IntN(4) == 0 {
		return
	}
	if f, n, err := wire.ConsumeFPDU(u); err == nil {
		binary.LittleEndian.PutUint32(u[n-wire.CRCLen:], f.Checksum())
	}
}

// ops are the changes that can be made to a stream.
var ops = []func(*mutation){
	(*mutation).flipBit, (*mutation).flipBit, (*mutation).setBytes, (*mutation).setBytes, (*mutation).setBytes, (*mutation).changeLength, (*mutation).cutUnit,
	(*mutation).cutStream, (*mutation).repeatUnit, (*mutation).swapUnits, (*mutation).dropUnit, (*mutation).spliceUnits, (*mutation).insertBytes,
}

func (m *mutation) flipBit() {
	i, at := m.pickOffset()
	if at < len(m.units[i]) {
		bit := byte(1) << m.IntN(8)
		m.units[i][at] ^= bit
		m.addNote("flip %#x of byte %d of unit %d", bit, at, i)
		m.repairCRC(i)
	}
}

// extremes are values that code is likely to handle wrongly.
var extremes = []uint64{0, 1, 2, 3, 4, 7, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 63, 1<<64 - 1}

func (m *mutation) setBytes() {
	i, at := m.pickOffset()
	size := 1 << m.IntN(4)
	if at &^= 1; at+size > len(m.units[i]) {
		return
	}
	v := extremes[m.IntN(len(extremes))]
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	copy(m.units[i][at:at+size], b[8-size:])
	m.addNote("set %d bytes at %d of unit %d to %#x", size, at, i, v)
	m.repairCRC(i)
}

// changeLength changes the length field of an FPDU or a frame.
func (m *mutation) changeLength() {
	i := m.IntN(len(m.units))
	at := 0
	if i == 0 {
		at = wire.FrameLen - 2
	}
	if u := m.units[i]; len(u) >= at+2 {
		n := binary.BigEndian.Uint16(u[at:])
		by := []uint16{1, 2, 4, 0xffff, 0xfffe, 0xfffc, -n, 0xffff - n, uint16(m.Uint32())}[m.IntN(9)]
		binary.BigEndian.PutUint16(u[at:], n+by)
		m.addNote("length of unit %d: %d", i, n+by)
		m.repairCRC(i)
	}
}

func (m *mutation) cutUnit() {
	i, at := m.pickOffset()
	m.units[i] = m.units[i][:at]
	m.addNote("cut unit %d to %d bytes", i, at)
}

// cutStream ends the stream early.
func (m *mutation) cutStream() {
	i, at := m.pickOffset()
	m.units = m.units[:i+1]
	m.units[i] = m.units[i][:at]
	m.addNote("stop in unit %d at %d", i, at)
}

func (m *mutation) repeatUnit() {
	i, j := m.IntN(len(m.units)), m.IntN(len(m.units)+1)
	m.units = slices.Insert(m.units, j, bytes.Clone(m.units[i]))
	m.addNote("unit %d again at %d", i, j)
}

func (m *mutation) swapUnits() {
	i, j := m.IntN(len(m.units)), m.IntN(len(m.units))
	m.units[i], m.units[j] = m.units[j], m.units[i]
	m.addNote("swap units %d and %d", i, j)
}

func (m *mutation) dropUnit() {
	i := m.IntN(len(m.units))
	m.units = slices.Delete(m.units, i, i+1)
	m.addNote("drop unit %d", i)
}

// spliceUnits puts the end of one unit behind the start of another.
func (m *mutation) spliceUnits() {
	i, at := m.pickOffset()
	j, from := m.pickOffset()
	m.units[i] = slices.Concat(m.units[i][:at], m.units[j][from:])
	m.addNote("unit %d up to %d, then unit %d from %d", i, at, j, from)
	m.repairCRC(i)
}

func (m *mutation) insertBytes() {
	i, at := m.pickOffset()
	junk := make([]byte, 1+m.IntN(40))
	for k := range junk {
		junk[k] = byte(m.Uint32())
	}
	m.units[i] = slices.Insert(m.units[i], at, junk...)
	m.addNote("%x inserted in unit %d at %d", junk, i, at)
	m.repairCRC(i)
}
