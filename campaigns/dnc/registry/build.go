package registry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// A Builder makes a registry file. It is not safe for concurrent use.
type Builder struct {
	name    string // name of the final file
	file    *os.File
	set     *Set
	size    int64
	added   int
	deleted int
	changes bool     // a list of changes was read
	country []string // all area codes of the country
}

// Build starts a temporary file, which Done renames to name. If from is not empty, Build first copies the numbers of
// the registry file from.
func Build(name, from string) (*Builder, error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part")
	if err != nil {
		return nil, err
	}
	b := &Builder{name: name, file: f, size: header}
	if from == "" {
		err = b.writeHeader()
	} else {
		err = b.copyFrom(from)
	}
	if err != nil {
		return nil, errors.Join(err, b.Abort())
	}
	return b, nil
}

func (b *Builder) writeHeader() error {
	head := make([]byte, header)
	copy(head, magic)
	if _, err := b.file.Write(head); err != nil {
		return err
	}
	return b.remap()
}

func (b *Builder) copyFrom(from string) error {
	old, err := os.Open(from) //nolint:gosec // the operator's own path
	if err != nil {
		return err
	}
	defer old.Close()
	if b.size, err = io.Copy(b.file, old); err != nil {
		return err
	}
	return b.remap()
}

// Country sets the area codes of the country, for nationwide lists.
func (b *Builder) Country(codes []string) { b.country = codes }

// Nationwide implements Sink.
func (b *Builder) Nationwide() error {
	for _, code := range b.country {
		if err := b.Area(code); err != nil {
			return err
		}
	}
	return nil
}

// Load reads a list; see Read.
func (b *Builder) Load(name string, progress func(n int64)) error {
	changes, err := Read(name, b, progress)
	b.changes = b.changes || changes
	return err
}

// Number implements Sink.
func (b *Builder) Number(digits []byte, listed bool) error {
	if len(digits) == 11 && digits[0] == '1' {
		digits = digits[1:]
	}
	area, number, ok := split(digits)
	if !ok {
		return fmt.Errorf("%w: %q is not a number of ten digits", ErrList, digits)
	}
	if area < 200 || number < 2_000_000 {
		return fmt.Errorf("%w: %03d %07d is not a North American number", ErrList, area, number)
	}
	return b.put(area, number, listed)
}

// HasChanges reports whether a list of changes was read. The numbers from the previous file are
// then as recent as that list.
func (b *Builder) HasChanges() bool { return b.changes }

// remap maps the file again after it has grown.
func (b *Builder) remap() error {
	if b.set != nil {
		if err := b.set.Close(); err != nil {
			return err
		}
		b.set = nil
	}
	var err error
	b.set, err = mapFile(b.file, b.size, syscall.PROT_READ|syscall.PROT_WRITE)
	return err
}

// Area adds an area code. Its numbers that are not listed may be called.
func (b *Builder) Area(code string) error {
	area, err := strconv.Atoi(code)
	if err != nil || len(code) != 3 || area < 200 {
		return fmt.Errorf("%w: %q is not an area code: use three digits, 200 to 999", ErrList, code)
	}
	_, err = b.area(area)
	return err
}

func (b *Builder) area(area int) (at int, err error) {
	if at = b.set.offset(area); at != 0 {
		return at, nil
	}
	at = int(b.size)
	if err := b.file.Truncate(b.size + setBytes); err != nil {
		return 0, err
	}
	b.size += setBytes
	if err := b.remap(); err != nil {
		return 0, err
	}
	binary.LittleEndian.PutUint32(b.set.bytes[16+4*area:], uint32(at/page)) //nolint:gosec // a thousand sets at most
	return at, nil
}

// put lists a number, or removes it from the list.
func (b *Builder) put(area, number int, listed bool) error {
	at, err := b.area(area)
	if err != nil {
		return err
	}
	octet, bit := &b.set.bytes[at+number/8], byte(1)<<(number%8)
	switch has := *octet&bit != 0; {
	case listed && !has:
		*octet |= bit
		b.added++
	case !listed && has:
		*octet &^= bit
		b.deleted++
	}
	return nil
}

// Counts returns how many numbers were added and removed.
func (b *Builder) Counts() (added, deleted int) { return b.added, b.deleted }

// Done syncs the file and renames it atomically.
func (b *Builder) Done() error {
	if err := b.set.Close(); err != nil {
		return err
	}
	b.set = nil
	if err := b.file.Sync(); err != nil {
		return errors.Join(err, b.Abort())
	}
	if err := errors.Join(b.file.Close(), os.Rename(b.file.Name(), b.name)); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(b.name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Abort deletes the temporary file.
func (b *Builder) Abort() error {
	var err error
	if b.set != nil {
		err = b.set.Close()
		b.set = nil
	}
	return errors.Join(err, b.file.Close(), os.Remove(b.file.Name()))
}
