package db_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/db"
)

func TestPack(t *testing.T) {
	line := []byte(`{"role":"agent","text":"We open at 9.","start":1000000000,"end":2000000000,"turn":1}`)
	for name, lists := range map[string][][][]byte{
		"no list": nil, "empty lists": {nil, nil}, "empty texts": {{{}, {}}, {[]byte("x")}},
		"lines and turns": {{line, line}, {[]byte(`{"turn":0}`)}}, "zeros": {{make([]byte, 1<<20)}},
	} {
		pack, err := db.Pack(lists...)
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := db.Unpack(pack)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(lists) {
			t.Errorf("%s: %.80v, %v", name, got, err)
		}
	}
	for name, pack := range map[string][]byte{"empty": nil, "version": {2, 0}, "cut": {1, 0xff}, "text": []byte("\x01{}")} {
		if got, err := db.Unpack(pack); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestOldPack reads a pack that an earlier release wrote: its format and its words must not change.
func TestOldPack(t *testing.T) {
	texts := [][]byte{[]byte(`{"role":"caller","text":"yes","start":1,"end":2,"turn":1}`)}
	pack, err := hex.DecodeString(oldPack)
	if err != nil {
		t.Fatal(err)
	}
	got, err := db.Unpack(pack)
	if err != nil || !reflect.DeepEqual(got, [][][]byte{texts}) {
		now, _ := db.Pack(texts)
		t.Errorf("%s, %v; a pack is now %x", got, err, now)
	}
}

const oldPack = "016264b4c457b8c2ca02b0b1a97929e0ee032c9500020000ffff"

func FuzzUnpack(f *testing.F) {
	pack, err := db.Pack([][]byte{[]byte("a"), []byte(strings.Repeat("b", 100))}, [][]byte{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pack)
	f.Fuzz(func(t *testing.T, pack []byte) {
		lists, err := db.Unpack(pack)
		if err != nil {
			return
		}
		again, err := db.Pack(lists...)
		if err != nil {
			t.Fatal(err)
		}
		back, err := db.Unpack(again)
		if err != nil || sha256.Sum256(fmt.Append(nil, back)) != sha256.Sum256(fmt.Append(nil, lists)) {
			t.Errorf("%v: %v", lists, err)
		}
	})
}
