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
	name    string // of the file to be
	file    *os.File
	set     *Set
	size    int64
	added   int
	deleted int
	changes bool     // a list of changes was read
	country []string // the area codes of the whole country
}

// Build begins a file beside name, which Done puts in its place. From, where
// it is not empty, is the file whose numbers are taken over.
func Build(name, from string) (*Builder, error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part")
	if err != nil {
		return nil, err
	}
	b := &Builder{name: name, file: f, size: header}
	if from == "" {
		err = b.blank()
	} else {
		err = b.take(from)
	}
	if err != nil {
		return nil, errors.Join(err, b.Abort())
	}
	return b, nil
}

func (b *Builder) blank() error {
	head := make([]byte, header)
	copy(head, magic)
	if _, err := b.file.Write(head); err != nil {
		return err
	}
	return b.remap()
}

func (b *Builder) take(from string) error {
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

// Country says which area codes the whole country has, for lists that are about
// it.
func (b *Builder) Country(codes []string) { b.country = codes }

// Whole implements Sink.
func (b *Builder) Whole() error {
	for _, code := range b.country {
		if err := b.Area(code); err != nil {
			return err
		}
	}
	return nil
}

// Load reads a list, as Read does.
func (b *Builder) Load(name string, told func(n int64)) error {
	changes, err := Read(name, b, told)
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
		return fmt.Errorf("%w: %q is no number of ten digits", ErrList, digits)
	}
	if area < 200 || number < 2_000_000 {
		return fmt.Errorf("%w: %03d %07d is no North American number", ErrList, area, number)
	}
	return b.put(area, number, listed)
}

// Changes tells whether one of the lists was one of changes: it makes what was
// there before as young as it is itself.
func (b *Builder) Changes() bool { return b.changes }

// remap maps all of the file, which grew.
func (b *Builder) remap() error {
	if b.set != nil {
		if err := b.set.Close(); err != nil {
			return err
		}
		b.set = nil
	}
	var err error
	b.set, err = mapped(b.file, b.size, syscall.PROT_READ|syscall.PROT_WRITE)
	return err
}

// Area makes an area code known, if it is not: those of its numbers that are
// not listed may be called.
func (b *Builder) Area(code string) error {
	area, err := strconv.Atoi(code)
	if err != nil || len(code) != 3 || area < 200 {
		return fmt.Errorf("%w: %q is no area code: write three digits, 200 to 999", ErrList, code)
	}
	_, err = b.area(area)
	return err
}

func (b *Builder) area(area int) (at int, err error) {
	if at = b.set.at(area); at != 0 {
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

// put lists a number, or takes it off.
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

// Changed tells how many numbers were listed that were not before, and how many
// were taken off.
func (b *Builder) Changed() (added, deleted int) { return b.added, b.deleted }

// Done writes the file to the disk and puts it in its place, at once: who opens
// it finds the old one or the new one.
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

// Abort takes back what was begun.
func (b *Builder) Abort() error {
	var err error
	if b.set != nil {
		err = b.set.Close()
		b.set = nil
	}
	return errors.Join(err, b.file.Close(), os.Remove(b.file.Name()))
}
