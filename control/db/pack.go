package db

import (
	"bytes"
	"compress/flate"
	_ "embed" // packwords.txt
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A pack holds lists of texts, compressed. Its first byte is the version of the format. The rest is deflated with
// packWords as the preset dictionary: the number of lists, and for each list its number of texts and each text with its
// length. Numbers are varints. Without packs the texts take more space, because Postgres compresses no row below 2 KB.

const packVersion = 1

// packWords are texts that calls have in common, the most frequent ones last. Packs of version 1 need exactly these.
//
//go:embed packwords.txt
var packWords string

// maxPack bounds the size of an unpacked pack.
const maxPack = 64 << 20

// Pack compresses lists of texts.
func Pack(lists ...[][]byte) ([]byte, error) {
	out := bytes.NewBuffer([]byte{packVersion}) // writing to it cannot fail
	w, err := flate.NewWriterDict(out, flate.BestCompression, []byte(packWords))
	if err != nil {
		return nil, err
	}
	head := binary.AppendUvarint(nil, uint64(len(lists)))
	write := func(text []byte) {
		if err == nil {
			_, err = w.Write(text)
		}
	}
	for _, list := range lists {
		write(binary.AppendUvarint(head, uint64(len(list))))
		head = nil
		for _, text := range list {
			write(binary.AppendUvarint(nil, uint64(len(text))))
			write(text)
		}
	}
	write(head)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// Unpack returns the lists that Pack compressed.
func Unpack(pack []byte) ([][][]byte, error) {
	if len(pack) == 0 || pack[0] != packVersion {
		return nil, fmt.Errorf("a pack of %d bytes does not have version %d: a newer release wrote it, or it is damaged", len(pack), packVersion)
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReaderDict(bytes.NewReader(pack[1:]), []byte(packWords)), maxPack))
	if err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	r := bytes.NewReader(plain)
	lists, err := readList(r, func() ([][]byte, error) {
		return readList(r, func() ([]byte, error) {
			n, fault := count(r)
			if fault != nil {
				return nil, fault
			}
			text := make([]byte, n)
			_, fault = io.ReadFull(r, text)
			return text, fault
		})
	})
	if err == nil && r.Len() > 0 {
		err = errors.New("more data than its lists")
	}
	if err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return lists, nil
}

func readList[T any](r *bytes.Reader, one func() (T, error)) (all []T, err error) {
	n, err := count(r)
	for range n {
		var v T
		if v, err = one(); err != nil {
			break
		}
		all = append(all, v)
	}
	return all, err
}

// count reads the number of items that follow. It rejects a number larger than that of the remaining bytes.
func count(r *bytes.Reader) (int, error) {
	n, err := binary.ReadUvarint(r)
	if err == nil && n > uint64(r.Len()) { //nolint:gosec // not negative
		err = errors.New("a number is larger than the rest")
	}
	return int(n), err //nolint:gosec // at most r.Len()
}
