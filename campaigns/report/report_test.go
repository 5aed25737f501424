package report

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/campaigns/store"
)

func testLines() [][]string {
	names := []string{"city"}
	all := [][]string{Header(names)}
	for _, l := range []store.ReportRow{
		{Row: 1, Phone: "+12025550101", Number: "+12025550101", Name: "=cmd()", Status: contactfile.Accepted, State: "pending", Variables: map[string]string{"city": "-Bern"}},
		{Row: 2, Phone: "+1 202", Name: "Zoë; \"Z\"\nline", Status: contactfile.Rejected, Issues: []contactfile.Issue{{Code: "phone_invalid", Message: "no, it is not"}, {Code: "x", Message: "y"}}},
	} {
		registry := ""
		if l.Row == 1 {
			registry = "us_national"
		}
		all = append(all, Cells(l, registry, names))
	}
	return all
}

func TestCells(t *testing.T) {
	all := testLines()
	for i, want := range []string{
		"row phone phone_normalized name timezone status codes messages contact_state registry var:city",
		"1|+12025550101|+12025550101|'=cmd()||dnc_match|||pending|us_national|'-Bern",
		"2|'+1 202||Zoë; \"Z\"\nline||rejected|phone_invalid x|no, it is not; y|||",
	} {
		sep := "|"
		if i == 0 {
			sep = " "
		}
		if got := strings.Join(all[i], sep); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for cell, want := range map[string]string{"": "", "+": "'+", "@x": "'@x", "\tx": "'\tx", "\rx": "'\rx", "a=b": "a=b", "+12": "+12"} {
		if got := guardCell(cell); got != want {
			t.Errorf("%q becomes %q", cell, got)
		}
	}
}

func TestTables(t *testing.T) {
	write := func(format string) []byte {
		var b bytes.Buffer
		w, err := New(format, &b)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range testLines() {
			if err := w.Write(l); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	body, marked := bytes.CutPrefix(write(CSV), []byte("\xef\xbb\xbf"))
	got, err := csv.NewReader(bytes.NewReader(body)).ReadAll()
	if !marked || err != nil || !slices.EqualFunc(got, testLines(), slices.Equal) {
		t.Errorf("csv: %v %q", err, got)
	}
	book, err := excelize.OpenReader(bytes.NewReader(write(XLSX)))
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close() //nolint:errcheck // its temporary files
	if got, err = book.GetRows("Sheet1"); err != nil || len(got) != 3 || got[1][1] != "+12025550101" || got[1][3] != "'=cmd()" {
		t.Errorf("xlsx: %v %q", err, got)
	}
	if kind, err := book.GetCellType("Sheet1", "B2"); err != nil || kind != excelize.CellTypeInlineString && kind != excelize.CellTypeSharedString {
		t.Errorf("a phone is of type %v, %v", kind, err)
	}
	if long, err := New(XLSX, &bytes.Buffer{}); err != nil || long.Write([]string{strings.Repeat("é", 40000)}) != nil {
		t.Errorf("a long cell: %v", err)
	}
}
