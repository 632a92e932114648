package room

import "fmt"

// Directory maps nicknames to members. The zero value is not usable; [NewDirectory] makes one.
type Directory struct{ members Names[*Member] }

// NewDirectory returns a directory without members.
func NewDirectory() *Directory { return &Directory{make(Names[*Member])} }

// Take gives m a nickname, unless another member has it, or one that looks like it.
func (d *Directory) Take(m *Member, nick string) error {
	nick, err := CheckName("nickname", nick, MaxNick)
	if err != nil {
		return err
	}
	for _, l := range likenesses(nick) {
		if other := d.members[l]; other != nil && other != m {
			if nick != other.Nick {
				return fmt.Errorf("the nickname %q looks like %q, who is here", nick, other.Nick)
			}
			return fmt.Errorf("the nickname %q is taken", nick)
		}
	}
	d.members.Remove(m.Nick)
	m.Nick = nick
	d.members.Put(nick, m)
	return nil
}

// Find returns the member with that nickname, or with one that looks like it.
func (d *Directory) Find(nick string) (*Member, bool) { return d.members.Find(nick) }

// Give frees m's nickname. It reports whether m had it.
func (d *Directory) Give(m *Member) bool {
	if found, _ := d.Find(m.Nick); found != m {
		return false
	}
	d.members.Remove(m.Nick)
	return true
}
