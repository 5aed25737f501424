// Package registry stores do-not-call registries of North American numbers: one bit
// for each of the ten million numbers of an area code, in a memory-mapped file.
// 250 million numbers take 450 MB; a lookup reads one byte.
package registry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"strings"
	"syscall"
)

// File format: the file begins with the magic. At byte 16, a table has the offset of the bit set of each of 1000 area
// codes, in pages; 0 means that the area code is not loaded. The bit sets follow, aligned to pages. Bit n of a set
// stands for the number whose last seven digits are n.
const (
	magic    = "PARLEYDNC\x001"
	areas    = 1000
	numbers  = 10_000_000 // numbers of an area code
	page     = 4096
	setBytes = (numbers/8 + page - 1) / page * page
	header   = (16 + areas*4 + page - 1) / page * page
)

// ErrFile is returned for a file that is not a registry.
var ErrFile = errors.New("not a registry file")

// A Set is an open registry. It is safe for concurrent use.
type Set struct {
	bytes   []byte
	cleanup runtime.Cleanup
}

// Open maps a file. Close unmaps it; the garbage collector also unmaps it when the set is
// unreachable.
func Open(name string) (*Set, error) {
	f, err := os.Open(name) //nolint:gosec // the operator's own path
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	s, err := mapFile(f, info.Size(), syscall.PROT_READ)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.cleanup = runtime.AddCleanup(s, func(b []byte) { _ = syscall.Munmap(b) }, s.bytes)
	return s, nil
}

func mapFile(f *os.File, size int64, prot int) (*Set, error) {
	if size < header || (size-header)%setBytes != 0 {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrFile, size)
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, int(size), prot, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	s := &Set{bytes: b}
	if string(b[:len(magic)]) != magic {
		return nil, errors.Join(fmt.Errorf("%w: the magic bytes are missing", ErrFile), s.Close())
	}
	for area := range areas {
		if at := s.offset(area); at != 0 && (at < header || int64(at)+setBytes > size) {
			return nil, errors.Join(fmt.Errorf("%w: area code %03d is outside of the file", ErrFile, area), s.Close())
		}
	}
	return s, nil
}

// Close unmaps the file. The set must not be used afterwards.
func (s *Set) Close() error {
	s.cleanup.Stop()
	return syscall.Munmap(s.bytes)
}

// offset returns the offset of an area code's bits, 0 if it is not loaded.
func (s *Set) offset(area int) int {
	return int(binary.LittleEndian.Uint32(s.bytes[16+4*area:])) * page
}

// Has reports whether a number (E.164) is listed, and whether its area code is loaded. If the area code is not
// loaded, listed has no meaning. Numbers outside the North American Numbering Plan are never loaded.
func (s *Set) Has(e164 string) (listed, loaded bool) {
	area, number, ok := split(strings.TrimPrefix(e164, "+1"))
	if !ok || len(e164) != len("+12025550123") {
		return false, false
	}
	defer runtime.KeepAlive(s)
	at := s.offset(area)
	if at == 0 {
		return false, false
	}
	return s.bytes[at+number/8]&(1<<(number%8)) != 0, true
}

// Areas returns the loaded area codes and the count of their listed numbers.
func (s *Set) Areas() map[string]int {
	defer runtime.KeepAlive(s)
	all := map[string]int{}
	for area := range areas {
		if at := s.offset(area); at != 0 {
			n := 0
			for b := s.bytes[at : at+setBytes]; len(b) > 0; b = b[8:] {
				n += bits.OnesCount64(binary.LittleEndian.Uint64(b))
			}
			all[fmt.Sprintf("%03d", area)] = n
		}
	}
	return all
}

// split splits ten digits into area code and number.
func split[T string | []byte](s T) (area, number int, ok bool) {
	if len(s) != 10 {
		return 0, 0, false
	}
	for i := range len(s) {
		d := int(s[i]) - '0'
		if d < 0 || d > 9 {
			return 0, 0, false
		}
		if i < 3 {
			area = area*10 + d
		} else {
			number = number*10 + d
		}
	}
	return area, number, true
}
